"""Portable C: any form of any operator, in elements of whole bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.graph.families import Pairwise
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.placing import Concat, Rearrange
from pipeline.graph.operators.recurrent import Recurrent
from pipeline.kernels.form import Form
from pipeline.kernels.int8 import limits
from pipeline.kernels.int8.costs import COSTS, PRODUCT_CYCLES, counted
from pipeline.kernels.kernel import Kernel
from pipeline.kernels.safe_offset import (
    NEVER,
    SafeOffset,
    best_offset,
    channel_offset,
    in_its_place,
    pixel_offset,
)
from pipeline.kernels.work import Counts, priced


@dataclass(frozen=True)
class Portable(Kernel):
    """Kernel for one kind of operator.

    Attributes:
        word: the kind.
        product_cycles: of a multiply–accumulate in a convolution.
        costs: of each kind of C, in proportion to that.
    """

    word: str
    product_cycles: float
    costs: Mapping[str, Counts] = field(default_factory=lambda: COSTS, repr=False, compare=False)

    @property
    def name(self) -> str:
        return f"int8.{self.word}"

    def why_not(self, form: Form) -> str:
        return limits.why_not(form)

    def looks_up(self, form: Form) -> bool:
        """Blocks that lie alike are gone through as they lie."""
        op = form.op
        channels = isinstance(op, Concat) and op.axis == 2
        as_they_lie = channels or type(op) is Lookup or isinstance(op, Pairwise)
        return form.scattered and not (as_they_lie and form.alike_blocks())

    def unit(self, form: Form) -> tuple[int, ...]:
        over = form.op.slides and form.overlaps and self.overlap(form, form.op.inputs[0])
        if over and over.at:
            return (*form.out.extents[:2], 1)
        return super().unit(form)

    def scratch_bytes(self, form: Form) -> int:
        return form.op.scratch_bytes(form.graph.tensors) if isinstance(form.op, Recurrent) else 0

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        """Windows over pixels keep what they make of some, or of a row's channel, until its inputs
        are read. Pieces that are joined are in their places, one that is cut out moves to the
        front."""
        if isinstance(form.op, Concat | Rearrange):
            return in_its_place(form, tensor)
        if isinstance(form.op, Recurrent):
            return self._over_step(form, tensor)
        if not form.op.slides or len(form.target.shape) < 3 or len(form.source.shape) < 3:
            return super().overlap(form, tensor)
        if not form.aside or form.out.extents[0] > 1:
            safe = pixel_offset(form, tensor)
            return safe and SafeOffset(safe.forwards)
        ways = [channel_offset(form, tensor), *(pixel_offset(form, tensor, n) for n in range(4))]
        return best_offset(form, tensor, ways)

    def _over_step(self, form: Form, tensor: str) -> SafeOffset | None:
        """Over what one step reads, which is copied first; c' takes c's place."""
        alone = form.source.shape[1] == 1
        if not alone or not (form.in_one_piece(tensor) and form.in_one_piece(form.op.output)):
            return None
        if tensor in form.op.inputs[2:]:
            return SafeOffset(-NEVER, at=(0,)) if form.out.bits == 16 else None
        return SafeOffset(form.parts[tensor].bits // 4 * form.graph.tensors[tensor].size)

    def cycles(self, form: Form) -> float:
        family, counts = counted(form)
        return self.product_cycles / PRODUCT_CYCLES * priced(counts, self.costs[family])
