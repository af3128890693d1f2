"""How long an operator takes by itself, where a plan moves its weights from a card to a window of
memory: what plans with a card are timed with."""

from __future__ import annotations

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.kernels import cortex_m, thumb
from pipeline.kernels.choose import choose
from pipeline.kernels.form import Form, Part


def alone_us(graph: Graph, hardware: Hardware) -> dict[str, float]:
    """Microseconds of each operator's whole output, by the cycles that its kernel declares, which
    were fitted to simulated layers; scratch it has none. In the setting of the paper, and of a core
    whose kernels declare none, there is no entry: ``hardware.cycles_per_mac`` says it."""
    if hardware.card.timing == "paper" or not _declares(hardware):
        return {}
    found = dict[str, float]()
    for op in graph.operators:
        form = _form(op, graph)
        try:
            kernel = choose(form, hardware, scratch=False)
        except ThimbleError:  # nobody computes it
            continue
        found[op.name] = round(kernel.cycles(form) / hardware.clock_hz * 1e6, 3)
    return found


def _declares(hardware: Hardware) -> bool:
    return cortex_m.has_dsp(hardware) or thumb.has_thumb(hardware)


def _form(op: Operator, graph: Graph) -> Form:
    """All of the output at once, weights in the order that the tensor has."""
    form = Form.whole(op, graph)
    if not op.weighted:
        return form
    weights = graph.tensors[op.parameters[0]]
    held = Part.packed(weights.shape, weights.dtype.bits)
    return Form(op, graph, {**form.parts, weights.name: held})
