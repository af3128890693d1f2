"""The baseline of Pex: the first layers patch by patch, what overlaps computed again (MCUNetV2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Compute, Lin, Loop, Move, Plan, Slice, Track
from pipeline.plan.vocabulary import Step as PlanStep
from pipeline.strategies.base import Strategy
from pipeline.strategies.constants import constants
from pipeline.strategies.order import least_peak
from pipeline.strategies.ordinary import needed
from pipeline.strategies.partial.emit import Emitter, Range, unit
from pipeline.strategies.partial.layout import lay_out
from pipeline.strategies.partial.network import Network
from pipeline.strategies.partial.schedule import Loop as Channels
from pipeline.strategies.partial.schedule import Step
from pipeline.strategies.patch.pieces import Program, in_stage, most, program
from pipeline.strategies.patch.stage import Stage, stages
from pipeline.strategies.prologue import Prologue

ROW, COLUMN = "patch_row", "patch_column"


@dataclass(frozen=True)
class Patch(Strategy):
    """
    Attributes:
        rows, columns: of patches.
        until: the tensor at which the part in patches ends; empty: where the peak is least.
    """

    name: ClassVar[str] = "patch"
    rows: int = 4
    columns: int = 4
    until: str = ""

    def __post_init__(self) -> None:
        if min(self.rows, self.columns) < 1:
            raise ThimbleError(
                f"strategy.rows={self.rows} strategy.columns={self.columns}: at least one patch"
            )

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        start = Prologue.of(graph, hardware)
        if start.streams:
            raise ThimbleError(
                f"strategy=patch reads the image again and again; on {hardware.name} it streams "
                "in: try strategy=partial"
            )
        found = self.program(graph)
        layout = lay_out(found.pieces, graph, hardware, 32)
        fixed = constants(graph, hardware, layout.cells)
        held = tuple(layout.buffers.values())
        every = {buffer.name: buffer for buffer in (*held, *fixed)}
        makers = {op.output: op for op in (*found.stage.operators, *found.rest)}
        emitter = Emitter(graph, every, makers)
        steps = [_patches(found.stage, emitter)]
        for op in found.rest:
            step = Step("full", op.output)
            special = op.output in found.channelwise
            steps.append(_in_place(emitter, op.output) if special else emitter.full(step))
        stage = found.stage
        once = sum(op.macs(graph.tensors) for op in stage.operators)
        again = stage.macs(graph) - once
        return Plan(
            graph.name,
            self.name,
            hardware.memories,
            (*held, *fixed),
            (Track("cpu", tuple(steps)),),
            (graph.input, *(buffer.name for buffer in fixed)),
            graph.output,
            notes=(
                ("patch_stage_end", stage.end),
                ("patch_stage_overhead_pct", round(100 * again / max(1, once), 2)),
                ("patch_overhead_pct", round(100 * again / max(1, graph.macs), 2)),
            ),
        )

    def program(self, graph: Graph) -> Program:
        """The stage that ends where the whole network's peak is least, then with the least work."""
        operators = needed(graph)
        found = stages(graph, graph.input, operators, (self.rows, self.columns))
        if self.until:
            found = [stage for stage in found if stage.end == self.until]
        programs = [self._program(graph, stage, operators) for stage in found]
        if not programs:
            where = f"until {self.until}" if self.until else "for any of its first layers"
            raise ThimbleError(
                f"strategy=patch: {graph.name} cannot run in {self.rows}x{self.columns} patches "
                f"{where}: try strategy=partial or ordinary, or fewer strategy.rows and .columns"
            )
        return min(programs, key=lambda p: (most(p.pieces), p.stage.macs(graph)))

    def _program(self, graph: Graph, stage: Stage, operators: Sequence[Operator]) -> Program:
        rest = [op for op in operators if op not in stage.operators]
        if rest:
            order = least_peak(Network.of(graph, stage.end, rest, 32).work).tasks
            rest = [rest[number] for number in order]
        return program(graph, stage, rest, most(in_stage(graph, stage)))


def _patches(stage: Stage, emitter: Emitter) -> PlanStep:
    """Every operator of the stage for one patch, patch after patch."""
    body = []
    for op in stage.operators:
        names = dict.fromkeys(operand.tensor for operand in emitter.operands(op))
        read = tuple(
            _tile(stage, emitter, name) if name in op.inputs else emitter.read(op, name, None)
            for name in names
        )
        out = _tile(stage, emitter, op.output)
        body.append(Compute(op.name, out, read, unit(op, out.size)))
    rows, columns = stage.grid
    return Loop(ROW, rows, (Loop(COLUMN, columns, tuple(body)),))


def _tile(stage: Stage, emitter: Emitter, name: str) -> Slice:
    """What a patch needs of the tensor ``name``."""
    buffer = emitter.buffers.get(f"{name}.tile") or emitter.buffers[name]
    (rows, columns), channels = stage.tiles[name], buffer.shape[2]
    lows = (
        Lin(span.low, ((variable, span.step),))
        for span, variable in zip((rows, columns), (ROW, COLUMN), strict=True)
    )
    return Slice(buffer.name, (*lows, 0), (rows.size, columns.size, channels))


def _in_place(emitter: Emitter, tensor: str) -> PlanStep:
    """A channel is computed apart, then takes the place of the one that it was made of."""
    out = emitter.buffers[tensor]
    variable = f"channel_{tensor}"
    one = Range(variable, 1)
    loop = Channels(out.shape[-1], 1, (Step("continue", tensor),))
    compute = emitter.pass_of(loop.steps[0], loop, one)
    move = Move(compute.out, emitter.channels(out, one))
    return Loop(variable, out.shape[-1], (compute, move))
