"""A network as a library: its C, what it takes of its board, and what the templates ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from pipeline.codegen import generate
from pipeline.codegen.arrival import input_bytes
from pipeline.codegen.generate import words
from pipeline.codegen.options import Options
from pipeline.errors import ThimbleError
from pipeline.frontends.frontend import RATE_HZ, Frontend
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.packages import memory
from pipeline.packages.memory import Memory
from pipeline.plan.vocabulary import Plan

NOT_C = ("steps.json",)
"""Files that a run's simulator asks for, and nobody else."""


@dataclass(frozen=True)
class Library:
    """
    Attributes:
        name: of the library and its folder.
        files: the C and what belongs to it, text by default name.
        input_bytes: of one frame as it is fed.
        labels: whether the header has labels.
        nibbles: whether a byte of the input holds 4 bits.
        image: (h, w, channels) of the only input, if its values have 8 bits; else ().
        best: C that gives the index of the greatest output, of several outputs of the first.
        listens: whether it has a front end, and takes sounds.
        stream: whether its states go on from sound to sound.
    """

    name: str
    version: str
    about: str
    _: KW_ONLY
    hardware: Hardware
    options: Options
    memory: Memory
    files: Mapping[str, str]
    input_bytes: int
    labels: bool
    nibbles: bool
    image: tuple[int, ...]
    best: str
    listens: bool
    stream: bool

    rate_hz: ClassVar[int] = RATE_HZ

    def placed(self, files: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
        """Return the library's files and ``files``, with its prefix, by their paths: that in
        ``places``, else C in ``src`` and what belongs to it in ``extras``."""
        named = self.options.names.files({**self.files, **files})
        kinds = {name: "src" if name.endswith((".c", ".h")) else "extras" for name in named}
        return {places.get(name, f"{kinds[name]}/{name}"): text for name, text in named.items()}


def library(
    graph: Graph,
    plan: Plan,
    hardware: Hardware,
    provenance: Mapping[str, str],
    options: Options,
    name: str,
    version: str,
    level: str,
    frontend: Frontend | None = None,
) -> Library:
    """Generated, compiled to see what it takes, and generated again to say so in its header.

    Args:
        plan: of ``graph``, proved.
        level: of optimization, of whoever will compile it.
        frontend: what makes the input of samples.

    Raises:
        ThimbleError: for a name or a version that no package can have, a plan that swaps, and what
            ``generate`` and ``memory.measure`` raise.
    """
    if plan.on_card:
        raise ThimbleError(
            f"strategy={plan.strategy}: a package has no driver for a card yet: try "
            "strategy=auto, or until=generate for the C and the card's image"
        )
    if any(memory.kind == "frame" for memory in plan.memories):
        raise ThimbleError(
            "hardware.input_again=true: a package is fed its input, and has none that lies "
            "elsewhere yet: leave it out, or try until=generate for the C"
        )
    if not re.fullmatch(r"\d+(\.\d+){2}", version):
        raise ThimbleError(f"package.version={version}: give three numbers, such as 1.0.0")
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    if not plain or not plain[0].isalpha():
        raise ThimbleError(f"package.library={name}: a library's name begins with a letter")
    plain_c = generate(graph, plan, hardware, provenance, options, frontend)
    found = memory.measure(plain_c, hardware, level)
    known = replace(options, stack=found.stack if found.stack.bytes else None)
    files = generate(graph, plan, hardware, provenance, known, frontend)
    inputs, outputs = ([graph.tensors[n] for n in each] for each in (graph.inputs, graph.outputs))
    return Library(
        plain,
        version,
        f"A network ({graph.name}) for {hardware.title}",
        hardware=hardware,
        options=known,
        memory=found,
        files={file: text for file, text in files.items() if file not in NOT_C},
        input_bytes=sum(map(input_bytes, inputs)),
        labels=bool(known.labels_in_c(outputs)),
        nibbles=inputs[0].dtype.bits < 8,
        image=inputs[0].shape if len(inputs) == 1 and inputs[0].dtype.bits == 8 else (),
        best=f"nn_best{words(outputs)[0]}()",
        listens=frontend is not None,
        stream=bool(graph.states),
    )
