"""Everything that reads a plan, and what it does with one that nobody has proved."""

import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from pipeline import verdict
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.plan import serialize
from pipeline.plan.calibrate import calibrated
from pipeline.plan.cost import cost, moved_bytes
from pipeline.plan.draw import pseudocode
from pipeline.plan.fit import fits, roomy
from pipeline.plan.forms import forms
from pipeline.plan.interpret import interpret
from pipeline.plan.profile import profile
from pipeline.plan.proof import prove
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.report import page as report_page
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summary
from tests.plan.subjects import Subject

MOST_BYTES = 4 << 30
"""Most bytes of memory, beside what was there before."""

Reader = Callable[[Plan, Subject], Any]


def generated(core: str) -> Reader:
    """C is made of what was proved, as stage generate does it."""

    def read(plan: Plan, subject: Subject) -> Any:
        prove(plan, subject.graph)
        return generate(subject.graph, plan, replace(subject.hardware, core=core), {})

    return read


def page(plan: Plan, subject: Subject) -> None:
    report = verdict.check(plan, subject.graph, subject.hardware)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "plan.html"
        costs = cost(roomy(plan), subject.graph, subject.hardware)
        report_page.write(place, subject.graph, plan, subject.hardware, costs, report)


def shown(plan: Plan, subject: Subject) -> str:
    frame = subject.inputs[0] if plan.frames > 1 else subject.inputs[0][0]
    return str(interpret(plan, subject.graph, frame))


READERS: dict[str, Reader] = {
    "verify": lambda plan, of: verify(plan, of.graph),
    "roomy": lambda plan, of: verify(roomy(plan), of.graph),
    "cost": lambda plan, of: cost(roomy(plan), of.graph, of.hardware),
    "fit": lambda plan, of: fits(plan, cost(of.plan, of.graph, of.hardware), of.hardware),
    "moved_bytes": lambda plan, of: moved_bytes(plan),
    "profile": lambda plan, of: profile(plan),
    "forms": lambda plan, of: forms(plan),
    "interpret": shown,
    "calibrated": lambda plan, of: calibrated(plan, of.graph, of.inputs[0]),
    "pseudocode": lambda plan, of: pseudocode(plan),
    "simulate": lambda plan, of: simulate(plan, of.graph, of.hardware),
    "summary": lambda plan, of: summary(plan, of.graph, of.hardware),
    "page": page,
    "hash": lambda plan, of: serialize.plan_hash(plan),
    "generate avr": generated("avr"),
    "generate cortex_m": generated("cortex_m"),
    "generate host": generated("host"),
}


@contextmanager
def little_memory() -> Iterator[None]:
    """``MemoryError`` beyond ``MOST_BYTES``."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + MOST_BYTES
    if limits[0] == resource.RLIM_INFINITY or most < limits[0]:
        resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def answers(plan: Plan, subject: Subject, readers: dict[str, Reader]) -> Iterator[tuple[str, str]]:
    """(reader, exception) of those that end in anything but a result or one ``ThimbleError``."""
    for name, read in readers.items():
        try:
            with little_memory(), np.errstate(all="ignore"):
                read(plan, subject)
        except ThimbleError as error:
            if "\n" in str(error):
                yield name, f"{len(str(error).splitlines())} lines: {error}"
        except Exception as error:
            yield name, f"{type(error).__name__}: {error}"
