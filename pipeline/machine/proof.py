"""State what one traced inference proves of every input: the content of ``machine_proof.json``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.machine import declared, decode, job, trace
from pipeline.machine.arms import arms
from pipeline.machine.lines import lines
from pipeline.machine.program import Program
from pipeline.machine.said import BOUNDED, COMPLETE, NONE, none, proved
from pipeline.plan.serialize import plan_hash
from pipeline.plan.vocabulary import Plan
from pipeline.targets import qemu, qemu_cycles, tools

INDEX, ARMS = "index", "arms"
BOUNDED_BY = (INDEX, ARMS)
"""Ways to depend on the input of which the worst is known."""

EXPLAINED = {
    "outside": "accesses memory outside of arena, tables and stack",
    "between": "accesses the arena between two steps",
    "write": "writes bytes that its step does not declare",
    "read": "uses bytes that its step does not declare",
    "overwritten": "uses bytes of its input that its step has overwritten",
    "unwritten": "leaves bytes of its output unwritten",
    "unread": "leaves bytes unread that its step declares",
    "impure": "makes an output of more than the input: of stale bytes or the caller's registers",
    "order": "is called where the plan has another step",
    "constant": "answers what no input changes",
    "branch": "branches by the input",
    "address": "accesses an address that depends on the input",
    "predicated": "accesses memory only for some inputs",
    "variable": "divides what depends on the input, which takes longer for some",
    "refused": "is an instruction that the checker does not know",
    ARMS: "branches by the input, as far as where the arms meet",
    INDEX: "reads a table at a byte that depends on the input",
}
KEPT = 20
"""Places that are said one by one."""


@dataclass(frozen=True)
class Traced:
    """One traced inference of a program that a plan describes."""

    program: Program
    table: Mapping[int, decode.Row]
    plan: Plan
    steps: list[declared.Declared]
    found: trace.Found

    @classmethod
    def run(
        cls, build: Path, size: Mapping[str, Any], hardware: Hardware, plan: Plan, graph: Graph
    ) -> Traced:
        """
        Raises:
            ThimbleError: QEMU is missing, or the firmware gives no answer.
        """
        program = Program.read(build / "firmware.elf")
        table = decode.table(program)
        reader = declared.Reader(plan, plan.buffer[plan.outputs[0]].memory, graph)
        steps = list(reader.steps())
        held = [name for name in plan.resident if plan.buffer[name].role != "constant"]
        ends = [(*span, job.GIVEN) for name in held for span in reader.whole(name)]
        ends += [(*span, job.MADE) for name in plan.outputs for span in reader.whole(name)]
        feeds = any(memory.kind == "stream" for memory in plan.memories)
        content = job.words(job.Network.of(program), table, steps, ends, feeds)
        found = trace.traced(build, size, hardware, content)
        return cls(program, table, plan, steps, found)

    @cached_property
    def against(self) -> list[trace.Finding]:
        """Everything that keeps this from being a proof, deviations first."""
        hard = (each for each in self.found.dependences if each.what not in BOUNDED_BY)
        return [*self.found.deviations, *hard]

    @property
    def kind(self) -> str:
        if self.against or not self.found.executed:
            return NONE
        return BOUNDED if self.found.dependences else COMPLETE

    @property
    def arms(self) -> int:
        """Instructions, at most, between branches that depend on data and where their arms meet."""
        bounded = (each for each in self.found.dependences if each.what == ARMS)
        return sum(each.count * arms(self.table, self.table[each.at]).longest for each in bounded)

    @property
    def reason(self) -> str:
        """Say in one line why this is no proof."""
        if not self.against:
            return "nn_invoke was not seen"
        first, more = self.against[0], len(self.against) - 1
        others = f", and {more:,} others" if more else ""
        return f"{self.where(first.at)} {EXPLAINED[first.what]}{others}"

    def where(self, at: int) -> str:
        function, row = self.program.function_at(at), self.table.get(at)
        inside = f"{function.name}+{at - function.address:#x}" if function else "nn_invoke"
        return f"{inside} ({row.text})" if row else inside

    def place(self, at: int, line: Mapping[int, int]) -> dict[str, Any]:
        function, row = self.program.function_at(at), self.table.get(at)
        found = {"address": at, "function": function.name if function else ""}
        found |= {"instruction": row.text} if row else {}
        return found | ({"line": line[at]} if at in line else {})

    def report(
        self, generated: Path, hardware: Hardware, device: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make the content of ``machine_proof.json``; ``device`` is that of ``device.json``."""
        places = [each.at for each in self.against[:KEPT] if each.at]
        line = lines(self.program, generated, hardware.toolchain, places) if places else {}
        odd, hard = self.found.deviations, self.found.dependences
        operator = [*(step.op for step in self.steps), ""]
        evidence = {
            "steps": len(self.steps),
            "executed": self.found.executed,
            "deviations": len(odd),
            "deviating": [
                {"what": each.what, "count": each.count, "step": each.step,
                 "operator": operator[min(each.step, len(self.steps))], "accessed": each.address}
                | self.place(each.at, line)
                for each in odd[:KEPT]
            ],
            "dependences": len(hard),
            "dependent": [
                {"what": each.what, "count": each.count, "on": list(each.labels)}
                | self.place(each.at, line)
                for each in hard[:KEPT]
            ],
            "plan": plan_hash(self.plan),
        }  # fmt: skip
        if self.kind == NONE:
            return none(self.reason) | {"evidence": evidence}
        said = proved(self.kind, self.found.executed, hardware, device, self.arms)
        return said | {"evidence": evidence}


def proof(
    build: Path,
    size: Mapping[str, Any],
    hardware: Hardware,
    plan: Plan,
    graph: Graph,
    generated: Path,
    device: Mapping[str, Any],
) -> dict[str, Any]:
    """Trace one inference of the firmware in ``build``, compare it with ``plan``, and say what
    that proves; with the hash of the program that it is about."""
    version = tools.run([qemu.PROGRAM, "--version"], build, qemu.PROGRAM)
    if not qemu_cycles.takes_plugins(version):
        return none("this QEMU has another plugin interface than the proof's")
    content = Traced.run(build, size, hardware, plan, graph).report(generated, hardware, device)
    program = (build / "firmware.elf").read_bytes()
    content["evidence"]["firmware_sha256"] = hashlib.sha256(program).hexdigest()
    return content
