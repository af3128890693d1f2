"""Windows along one axis of their input: how they move, and which of their taps are inside."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.codegen.c.expressions import minus, product
from pipeline.codegen.c.values import Span, Value


@dataclass(frozen=True, kw_only=True)
class WindowAxis:
    """Along rows or columns, as a template sees it.

    Attributes:
        variable: the output index, "y" or "x"; ``tap``: the kernel's, "ky" or "kx".
        edges: whether some windows reach beyond what may be read.
        vacant: whether some may have nothing to read at all.
    """

    variable: str
    tap: str
    origin: str
    taps: int
    stride: int
    pad: int
    dilation: int
    edges: bool
    vacant: bool

    @property
    def first(self) -> str:
        """The input index under tap 0."""
        return minus(product(self.variable, self.stride), str(self.pad))

    @property
    def begins(self) -> str:
        """The first tap inside, or 0."""
        return f"{self.tap}_first" if self.edges else "0"

    @property
    def ends(self) -> str:
        return f"{self.tap}_end" if self.edges else str(self.taps)

    @property
    def single(self) -> bool:
        """There is one tap, and it is always inside: no loop."""
        return self.taps == 1 and not self.edges

    @property
    def count(self) -> str:
        """Return C for the number of taps that are inside."""
        return minus(self.ends, self.begins)

    def bounds(self, start: str, stop: str, skip: bool) -> list[str]:
        """C that finds the taps between the input indices ``start`` and ``stop``.

        Args:
            skip: outputs without any are left alone.
        """
        if not self.edges:
            return []
        origin, dilation = self.origin, self.dilation
        first = f"nn_first_tap({origin}, {start}, {dilation})"
        end = f"nn_end_tap({origin}, {stop}, {dilation}, {self.taps})"
        found = [f"const int32_t {self.begins} = {first};", f"const int32_t {self.ends} = {end};"]
        if self.vacant and skip:
            found += [f"if ({self.begins} >= {self.ends}) {{", "    continue;", "}"]
        return found

    def index(self, tap: str) -> str:
        """Return the input index under ``tap``."""
        moved = product(tap, self.dilation)
        return self.origin if moved == "0" else f"{self.origin} + {moved}"

    @property
    def read(self) -> str:
        """The input index under the tap of the loops."""
        return self.index("0" if self.single else self.tap)


def window_axes(
    out: Sequence[Span], inside: tuple[Span, Span], kernel: tuple[int, int],
    stride: tuple[int, int], padding: tuple[int, int, int, int], dilation: tuple[int, int] = (1, 1),
) -> tuple[WindowAxis, WindowAxis]:  # fmt: skip
    """Rows and columns.

    Args:
        out: the output indices; ``inside``: the input indices that may be read.
    """

    def along(axis: int) -> WindowAxis:
        taps, step, pad, apart = kernel[axis], stride[axis], padding[2 * axis], dilation[axis]
        reach = (taps - 1) * apart
        first, last = out[axis].start * step - pad, (out[axis].stop - 1) * step - pad
        low, high = inside[axis].start, inside[axis].stop
        edges = (first - low).low < 0 or (high - last - reach).low < 1
        # a window before all that may be read, after it, or stepping over it
        vacant = (first + reach - low).low < 0 or (high - last).low < 1
        vacant = vacant or (apart > 1 and inside[axis].fewest < apart)
        variable, tap, origin = (("y", "ky", "top"), ("x", "kx", "left"))[axis]
        return WindowAxis(
            variable=variable, tap=tap, origin=origin, taps=taps, stride=step, pad=pad,
            dilation=apart, edges=edges, vacant=edges and vacant,
        )  # fmt: skip

    return along(0), along(1)


def named(prefix: str, part: Span) -> dict[str, Value]:
    return {f"{prefix}_start": part.start, f"{prefix}_stop": part.stop}


def ranges(
    box: Sequence[Span], inside: tuple[Span, Span], outs: Span | None = None
) -> dict[str, Value]:
    """The output's rows and columns, its channels where they are a loop, and what may be read."""
    channels = named("o", outs) if outs else {}
    read = named("inside_y", inside[0]) | named("inside_x", inside[1])
    return named("y", box[0]) | named("x", box[1]) | channels | read
