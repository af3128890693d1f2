"""Strategy ``swap``: tiles move between memory and a card while others are computed."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import alone
from pipeline.plan import ahead
from pipeline.plan.rates import Rates
from pipeline.plan.vocabulary import Plan
from pipeline.schedules import flushed
from pipeline.search.moves.swap import card_share, laid, left, searched
from pipeline.search.swap import best, swapnn
from pipeline.search.view.tiles import chain, timed
from pipeline.strategies.base import Objective, Strategy


@dataclass(frozen=True)
class Swap(Strategy):
    """For networks of images and vectors in 8 bits, on a board with a card.

    Attributes:
        scheduler: ``best`` searches; ``swapnn`` is the published one (Miao and Lin 2021).
        objective: what ``best`` makes small: the time of one frame, or, ``throughput``, that of
            ``frames``, or the ``energy`` of core and card. Less memory than there is is never the
            aim: ``hardware.sram_bytes`` says it.
        frames: in flight together; 0: 1 for latency, 10 for throughput.
        ahead_bytes: of SRAM to feed the next inputs while others are computed; 0: before.
        flush_bytes: of a block that is written whenever the card would be idle; 0: none.
        buffer_bytes: ``swapnn``'s; all its buffers are of this size.
        pools: ``swapnn``'s shares of the buffers for input, weight and output tiles.
    """

    name: ClassVar[str] = "swap"
    scheduler: Literal["best", "swapnn"] = "best"
    objective: Objective = "latency"
    frames: int = 0
    ahead_bytes: int = 0
    flush_bytes: int = 0
    buffer_bytes: int = 131072
    pools: tuple[int, int, int] = (1, 2, 1)

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        """
        Raises:
            ThimbleError: for settings that make no sense, a board without a card, or a network
                that the scheduler does not take.
        """
        self.check(hardware)
        if size := self.flush_bytes:
            plain = replace(self, flush_bytes=0)
            return flushed.beside(lambda less: plain.plan(graph, less), graph, hardware, size)
        if size := self.ahead_bytes:
            plain = replace(self, ahead_bytes=0)
            return ahead.beside(lambda less: plain.plan(graph, less), hardware, size)
        rates = Rates.of(hardware)
        frames = self.frames or (10 if self.objective == "throughput" else 1)
        if self.scheduler == "best":
            aim = best.Aim(card_share(hardware) if self.objective == "energy" else 0.0)
            return searched(self.name, graph, hardware, frames, aim)
        pools = swapnn.pools(left(graph, hardware), self.buffer_bytes, self.pools)
        chained = timed(chain(graph), alone.alone_us(graph, hardware), rates)
        found = swapnn.schedule(graph, chained, pools, frames, rates)
        return laid(self.name, *found, graph, hardware, frames)

    def check(self, hardware: Hardware) -> None:
        self.choose("scheduler", ("best", "swapnn"))
        if self.frames < 0:
            raise ThimbleError(f"strategy.frames={self.frames}: a number of frames, 0 for as usual")
        if self.buffer_bytes < 16:
            raise ThimbleError(f"strategy.buffer_bytes={self.buffer_bytes}: at least 16")
        if self.flush_bytes and self.ahead_bytes:
            raise ThimbleError("strategy.flush_bytes: not beside strategy.ahead_bytes")
        if len(self.pools) != 3:
            raise ThimbleError(f"strategy.pools={list(self.pools)}: three shares, such as [1,2,1]")
        if hardware.storage is None:
            raise ThimbleError(
                f"strategy swap needs a card and {hardware.name} has none; try "
                "hardware=stm32f746g_sd or strategy=auto"
            )
        line_bytes = hardware.card.line_bytes
        if self.scheduler == "swapnn" and self.buffer_bytes % line_bytes:
            raise ThimbleError(
                f"strategy.buffer_bytes={self.buffer_bytes}: {hardware.name} needs a multiple of "
                f"{line_bytes}, the bytes of a line of its data cache, which no two buffers share"
            )
