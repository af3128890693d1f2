"""Tables that kernels that slide windows over pixels share: of pixels, lines and weights."""

import zlib
from dataclasses import dataclass, field

from pipeline.codegen.c.order import Line
from pipeline.codegen.constants import Table, c_bits
from pipeline.codegen.int4.kernel import WindowKernel
from pipeline.codegen.int4.views import PixelTables
from pipeline.codegen.permutations import Permutations
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan


@dataclass(frozen=True)
class Image:
    """Parameters that are not in the program but sent over the line before the first frame.

    They lie in SRAM side by side in the order they are sent. The program knows their CRC-32: its
    arithmetic relies on the range of their sums (``packing``), so other parameters are as wrong as
    damaged ones.
    """

    content: bytes

    @property
    def bytes(self) -> int:
        return len(self.content)

    @property
    def crc(self) -> int:
        """CRC-32 of IEEE 802.3, as zlib has it."""
        return zlib.crc32(self.content)

    @property
    def count_type(self) -> str:
        """The C type of a number of these bytes."""
        return f"uint{max(16, c_bits([self.bytes]))}_t"


@dataclass
class Windows:
    """
    Attributes:
        lines: every line of every call, one after the other: ``nn_lines``.
        edges: whether a kernel has to know where padding begins; lines then carry coordinates.
        arrays: names of weights and biases already defined.
        parameters: those of them that are sent over the line, in the order they are sent.
        kernels: by operator and kinds of view, in the order they are first called.
        sums: tables of all sums: ``nn_sums4``.
        copies: whether there are pixels that are only copied.
        endings: of sums that become nibbles, by operator: the name and the C of what does it.
        shared: C variables that several kernels need.
    """

    graph: Graph
    plan: Plan
    hardware: Hardware
    tables: PixelTables = field(default_factory=PixelTables)
    lines: list[Line] = field(default_factory=list)
    edges: bool = False
    arrays: set[str] = field(default_factory=set)
    parameters: list[Table] = field(default_factory=list)
    kernels: dict[str, WindowKernel] = field(default_factory=dict)
    sums: list[int] = field(default_factory=list)
    copies: bool = False
    endings: dict[str, tuple[str, str]] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.permutations = Permutations(self.has_assembly, self.hardware.kernels == "small")

    @property
    def pixel_steps(self) -> str:
        """The C type of the steps in y and x of all lines."""
        return f"int{c_bits((s for line in self.lines for s in line.step[2:]), signed=True)}_t"

    def once(self, array: Table) -> list[Table]:
        """Return what defines it: nothing where another kernel has already, or it is sent over the
        line."""
        known = array.name in self.arrays
        self.arrays.add(array.name)
        if self.streams_parameters and not known:
            self.parameters.append(array)
        return [] if known or self.streams_parameters else [array]

    def constants_in_flash(self, op: Operator) -> bool:
        """Raises ThimbleError for constants of one operator in more than one memory."""
        buffers = [b for b in self.plan.buffers if b.tensor in op.parameters]
        kinds = {self.plan.memory[buffer.memory].kind for buffer in buffers}
        if len(kinds) > 1 or len(buffers) > len(op.parameters):
            names = ", ".join(f"{b.name} in {b.memory}" for b in buffers)
            raise ThimbleError(
                f"{op.name}: generated code reads an operator's constants from one place, the "
                f"plan has {names}"
            )
        return kinds == {"rom"}

    @property
    def image(self) -> Image | None:
        """None for a program that holds its parameters itself. All kernels have to be known."""
        content = b"".join(array.content for array in self.parameters)
        return Image(content) if content else None

    @property
    def streams_parameters(self) -> bool:
        return self.hardware.weights_in == "stream"

    @property
    def has_assembly(self) -> bool:
        return self.hardware.core == "avr"
