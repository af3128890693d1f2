"""Code for a core with the DSP extension, run natively by its portable twin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import Native, host


def core(cpu: str = "cortex-m4", sram_bytes: int = 1 << 24) -> Hardware:
    return replace(host(sram_bytes), core="cortex_m", cpu=cpu)


def twin(folder: Path, graph: Graph, plan: Plan | None = None, *, sanitize: bool = True) -> Native:
    plan = plan or Ordinary().plan(graph, core())
    files = generate(graph, plan, core(), {})
    return Native(folder, graph, plan, sanitize=sanitize, files=files)


def fast(native: Native, template: str) -> int:
    """How many of its kernels are the fast ones of that kind, by what their comments say."""
    says = {"conv2d": "2 channels at a time", "depthwise": "each with its rows by itself",
            "dense": "dense", "sum": "a word of each", "gate": "a word and its factors",
            "pool": ", 4 channels at a time"}  # fmt: skip
    text = native.files["model.c"]
    return sum(says[template] in line and "at a time" in line for line in text.splitlines())


def coarser(plan: Plan, least: int) -> Plan:
    """Rounded sums with steps of ``least`` or more."""
    buffers = (replace(b, step=max(b.step, least)) if b.step > 1 else b for b in plan.buffers)
    return replace(plan, buffers=tuple(buffers))
