"""Propose tiles that move between memory and a card while others are computed."""

from collections.abc import Callable

from pipeline.anytime import CUT_SHORT, AnytimeSearch
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import alone
from pipeline.plan.rates import Rates, noted_us
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.lower import Notes, laid_at, room
from pipeline.schedules.swapped import Swapped
from pipeline.search.swap import best
from pipeline.search.view.tiles import layers, timed


def left(graph: Graph, hardware: Hardware) -> int:
    """Bytes of SRAM for tiles."""
    return (room(graph, hardware, graph.constants) - kept(graph, hardware)) // 2


def kept(graph: Graph, hardware: Hardware) -> int:
    """Nibbles of SRAM that the card's driver takes, and what makes the card safe."""
    maps = (tensor.bytes for name, tensor in graph.tensors.items() if name not in graph.constants)
    return 2 * (hardware.card.kept_bytes + hardware.card.sums_bytes(maps))


def searched(
    name: str, graph: Graph, hardware: Hardware, frames: int, aim: best.Aim, seconds: float = 0.0
) -> Plan:
    """Return the plan that ``best`` finds for a board with a card, as strategy ``name``'s; the best
    so far after ``seconds``, if there are any.

    Raises:
        ThimbleError: for a network that cannot be cut into tiles.
    """
    available, rates = left(graph, hardware), Rates.of(hardware)
    us = alone.alone_us(graph, hardware)
    in_flash = alone.alone_us(graph, hardware, windows=False) if aim.flash_bytes else {}
    taking = timed(layers(graph), us, rates, in_flash)
    line_bytes, besides = hardware.card.line_bytes, hardware.sram_bytes - available
    how = graph, taking, available, frames, rates, line_bytes, aim
    short: Notes = (CUT_SHORT,)

    def longer_us(region: Swapped) -> float:
        taken = noted_us(laid(name, region, (), graph, hardware, frames), graph) if us else us
        return frames * (sum(taken.values()) - sum(us.values()))

    with AnytimeSearch[Callable[[], best.Answer]](seconds) as anytime:
        region, notes = best.search(*how, anytime=anytime, longer_us=longer_us)
        short = ()
    if short:
        assert anytime.best
        region, notes = anytime.best()
    stays = {key: int(n) + besides for key, n in notes if key in best.STAYS}
    return laid(name, region, (*(dict(notes) | stays).items(), *short), graph, hardware, frames)


def laid(
    name: str, region: Swapped, notes: Notes, graph: Graph, hardware: Hardware, frames: int
) -> Plan:
    """Return the plan of ``region`` at the addresses that it has."""
    size, taken = 2 * region.bytes, kept(graph, hardware)
    found = laid_at([region], graph, hardware, size, {}, frames, taken).plan(name, notes)
    return alone.timed(found, graph, hardware)


def card_share(hardware: Hardware) -> float:
    """Energy: how many microseconds of waiting a microsecond of the card's work costs; 0 where the
    board's currents are not known."""
    power, card = hardware.power, hardware.card
    return max(0.0, card.read_ma - card.idle_ma) / (power.idle_ma + card.idle_ma or 1.0)
