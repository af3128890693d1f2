"""The base class of every strategy. The YAML's ``_target_`` is the only registry."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan

Layout = Literal["slots", "contiguous"]
LAYOUTS: tuple[Layout, ...] = ("slots", "contiguous")
Objective = Literal["memory", "latency", "throughput", "energy"]
OBJECTIVES: tuple[Objective, ...] = ("memory", "latency", "throughput", "energy")
"""Objectives of all strategies; docs/strategies.md says what each strategy makes of them."""

ANY = 1 << 62
"""More multiply–accumulates than a network has."""


class Estimate(NamedTuple):
    """``peak_bytes``, and the tensors that are there at each moment with as much."""

    peak_bytes: float
    level: Collection[frozenset[str]]


@dataclass(frozen=True)
class Strategy(ABC):
    """Decides who computes what, when, and where in memory.

    Attributes:
        name: in plans and messages.
        quick_plan_macs: the multiply–accumulates of the largest network that it plans in a second.
        layout: of chains in place, the others have none: ``slots`` puts every output in any free
            nibble through a static address table; ``contiguous`` keeps tensors in one piece and
            permutes them at run time, as the paper.
        objective: what is made small, or ``throughput`` large.
    """

    name: ClassVar[str]
    quick_plan_macs: ClassVar[int] = 0
    layout: Layout = "slots"
    objective: Objective = "memory"

    def __post_init__(self) -> None:
        self.choose("objective", OBJECTIVES)

    def choose(self, key: str, allowed: Sequence[object]) -> None:
        """
        Raises:
            ThimbleError: when ``key`` of the config has none of these values.
        """
        value = getattr(self, key)
        if value not in allowed:
            *others, last = map(str, allowed)
            raise ThimbleError(f"strategy.{key}={value}: choose {', '.join(others)} or {last}")

    def estimate(self, graph: Graph, hardware: Hardware) -> Estimate | None:
        """Estimate the plan's peak much faster than planning does; None: only a plan can tell."""
        return None

    @abstractmethod
    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        """Return a plan for one frame. Whether it fits the hardware is checked elsewhere.

        Raises:
            ThimbleError: when the strategy has no plan for the graph's operators or topology.
        """
