"""Attacks through scratch: what a kernel destroys must be nobody's."""

from __future__ import annotations

from dataclasses import replace

from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Clear,
    Compute,
    Finish,
    Move,
    Plan,
    Slice,
    Table,
    Track,
    packed,
    whole,
)
from tests.plan.adversarial import (
    Subject,
    attack,
    changed,
    edited,
    halves,
    layer,
    rebuffered,
    scratch,
    step_of,
    sums,
    with_buffers,
    with_steps,
)


def destroying(name: str, plan: Plan) -> Plan:
    return changed(plan, scratch=(name,))


@attack("for scratch")
def scratch_is_a_kept_constant() -> Subject:
    """The kernel destroys the bias, which lies apart in SRAM and has no tokens, before Finish."""
    plan, graph = halves()
    bias = replace(plan.buffer["y.bias"], memory="sram", map=packed((3,), 8, 2 * 64))
    clear, first, *rest = plan.tracks[0].steps
    assert isinstance(first, Compute)
    steps = (clear, replace(first, scratch=("y.bias",)), *rest)
    return edited(plan, *steps, buffers=(bias,)), graph


@attack("for scratch")
def scratch_is_a_constant_in_rom() -> Subject:
    """The kernel writes to flash."""
    plan, graph = layer()
    return destroying("y.bias", plan), graph


@attack("for scratch")
def scratch_is_the_input() -> Subject:
    """The kernel destroys what it reads, whose role is not scratch."""
    plan, graph = layer()
    return destroying("x", plan), graph


@attack("for scratch")
def scratch_is_the_output() -> Subject:
    """The kernel destroys what it writes, whose role is not scratch."""
    plan, graph = layer()
    return destroying("y", plan), graph


@attack("for scratch")
def scratch_is_the_output_after_it_is_made() -> Subject:
    """A second kernel, of part of the layer, destroys all of the output of the first."""
    plan, graph = layer()
    again = replace(step_of(plan), out=Slice("z", (0,), (3,)), scratch=("y",))
    z = Buffer("z", "y", "sram", (3,), 16, packed((3,), 16, 2 * 64))
    return with_steps(with_buffers(plan, z), step_of(plan), again), graph


@attack("for scratch")
def scratch_is_an_idle_activation() -> Subject:
    """Nobody uses the buffer, but its role says that it holds a tensor."""
    plan, graph = layer()
    idle = Buffer("idle", "x", "sram", (4,), 8, packed((4,), 8, 2 * 64))
    return destroying("idle", with_buffers(plan, idle)), graph


@attack("for scratch")
def scratch_is_an_accumulator() -> Subject:
    """The first half's kernel destroys other sums' buffer."""
    plan, graph = halves()
    clear, first, *rest = plan.tracks[0].steps
    assert isinstance(first, Compute)
    plan = with_buffers(plan, sums("other", 32, 64))
    return with_steps(plan, clear, replace(first, scratch=("other",)), *rest), graph


@attack("which is no RAM")
def scratch_in_rom() -> Subject:
    """Scratch above the constants in flash."""
    plan, graph = layer()
    return destroying("scratch", with_buffers(plan, scratch(200, memory="flash"))), graph


@attack("which is no RAM")
def scratch_in_rom_over_constants() -> Subject:
    """Scratch on the weights in flash, which a burnt byte would change for ever."""
    plan, graph = layer()
    return destroying("scratch", with_buffers(plan, scratch(0, memory="flash"))), graph


@attack("which is no RAM")
def scratch_in_a_stream() -> Subject:
    """Scratch in a memory that no one can write."""
    plan, graph = layer()
    return destroying("scratch", with_buffers(plan, scratch(0, memory="stream"))), graph


@attack("which is no RAM")
def scratch_on_a_card() -> Subject:
    """A kernel cannot work in blocks of a card."""
    plan, graph = layer()
    return destroying("scratch", with_buffers(plan, scratch(0, memory="card"))), graph


@attack("which is no RAM")
def unused_scratch_in_rom() -> Subject:
    """No kernel uses it, but it is no place for scratch."""
    plan, graph = layer()
    return with_buffers(plan, scratch(200, memory="flash")), graph


@attack("there is no buffer nothing")
def scratch_that_does_not_exist() -> Subject:
    """A name without a buffer."""
    plan, graph = layer()
    return destroying("nothing", plan), graph


@attack("finds garbage")
def scratch_over_a_constant_that_was_read() -> Subject:
    """The first answer is right; then a kernel destroys the bias, and the second frame has none."""
    plan, graph = halves()
    bias = replace(plan.buffer["y.bias"], memory="sram", map=packed((3,), 8, 2 * 64))
    clear, first, *rest = plan.tracks[0].steps
    assert isinstance(first, Compute)
    steps = (clear, first, *rest, clear, replace(first, scratch=("scratch",)))
    return edited(plan, *steps, buffers=(bias, scratch(65))), graph


@attack("overlaps x")
def scratch_over_the_input() -> Subject:
    """The kernel's scratch begins in the last byte that it reads."""
    plan, graph = layer()
    return destroying("scratch", with_buffers(plan, scratch(3))), graph


@attack("overlaps y")
def scratch_over_the_output() -> Subject:
    """The kernel's scratch ends in the first byte that it writes."""
    plan, graph = layer()
    return destroying("scratch", with_buffers(plan, scratch(5))), graph


@attack("finds garbage")
def scratch_over_open_sums() -> Subject:
    """Another layer's kernel runs between two halves and destroys what they have so far."""
    plan, graph = halves()
    clear, first, *rest = plan.tracks[0].steps
    z = Buffer("z", "y", "sram", (3,), 16, packed((3,), 16, 2 * 64))
    other = Compute(
        "y", whole(z), tuple(map(whole, layer()[0].buffers[:1] + layer()[0].buffers[2:])),
        scratch=("scratch",),
    )  # fmt: skip
    plan = with_buffers(plan, z, scratch(18, 1))
    return with_steps(plan, clear, first, other, *rest), graph


@attack("lies on another scratch")
def two_scratches_in_the_same_place() -> Subject:
    """A kernel that needs two works in both at once."""
    plan, graph = layer()
    a, b = scratch(64), replace(scratch(66), name="more")
    return changed(with_buffers(plan, a, b), scratch=("scratch", "more")), graph


@attack("lies on another scratch")
def one_scratch_twice() -> Subject:
    """A kernel that needs two gets one under the same name twice."""
    plan, graph = layer()
    return changed(with_buffers(plan, scratch(64)), scratch=("scratch", "scratch")), graph


@attack("of role scratch is of tensor")
def scratch_of_a_tensor() -> Subject:
    """It destroys nothing, but pretends to hold the input."""
    plan, graph = layer()
    return destroying("scratch", with_buffers(plan, scratch(64, tensor="x"))), graph


@attack("reaches nibbles")
def scratch_beyond_its_memory() -> Subject:
    """Four bytes from byte 126 of 128 on."""
    plan, graph = layer()
    return destroying("scratch", with_buffers(plan, scratch(126))), graph


@attack("is not in one piece")
def scratch_below_its_memory() -> Subject:
    """A stride of -2 from byte 1 on, down to byte -2."""
    plan, graph = layer()
    below = replace(scratch(0), map=Affine(2, (-2,)))
    return destroying("scratch", with_buffers(plan, below)), graph


@attack("of role scratch has 3 copies")
def scratch_in_many_copies() -> Subject:
    """Only what holds a tensor has copies."""
    plan, graph = layer()
    many = replace(scratch(64), copies=3, copy_stride=8)
    return destroying("scratch", with_buffers(plan, many)), graph


@attack("of role scratch is of tensor")
def scratch_as_the_output() -> Subject:
    """Results go where a kernel may write anything."""
    plan, graph = layer()
    made = replace(plan.buffer["y"], role="scratch")
    return with_buffers(plan, made), graph


@attack("of role scratch is of tensor")
def scratch_as_an_input() -> Subject:
    """The input's buffer is scratch: its shape is not checked against the tensor's."""
    plan, graph = layer()
    return rebuffered(plan, "x", role="scratch"), graph


@attack("of role scratch is of tensor")
def scratch_that_is_resident() -> Subject:
    """Scratch with content before the first step."""
    plan, graph = layer()
    plan = with_buffers(plan, scratch(64, tensor="x"))
    return replace(plan, resident=(*plan.resident, "scratch")), graph


@attack("of role scratch is of tensor")
def scratch_cleared_as_sums() -> Subject:
    """Clear opens accumulators in scratch."""
    plan, graph = halves(replace(sums("acc", 32, 16), role="scratch"))
    return plan, graph


@attack("of role scratch is of tensor")
def scratch_finished_as_sums() -> Subject:
    """Finish reads its sums from scratch over them."""
    plan, graph = halves()
    twin = replace(sums("twin", 32, 16), role="scratch")
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    plan = with_buffers(plan, twin)
    return with_steps(plan, *steps, replace(last, acc=whole(twin))), graph


@attack("of role scratch is of tensor")
def shape_of_scratch_renumbers_elements() -> Subject:
    """Scratch of the weights' tensor, but of shape (4, 3), carries them through two moves: each
    element comes back under another number."""
    plan, graph = layer()
    shape = (4, 3)
    false = Buffer("scratch", "y.weight", "sram", shape, 8, packed(shape, 8, 2 * 64), "scratch")
    ram = replace(
        plan.buffer["y.weight"], name="ram", memory="sram", role="activation",
        map=packed((3, 4), 8, 2 * 96),
    )  # fmt: skip
    box = ((0, 0), (3, 3))
    x, y, weight, bias = plan.buffers
    steps = (
        Move(Slice(weight.name, *box), Slice("scratch", *box)),
        Move(Slice("scratch", *box), Slice("ram", *box)),
        Move(Slice(weight.name, (0, 3), (3, 1)), Slice("ram", (0, 3), (3, 1))),
        Compute("y", whole(y), (whole(x), whole(ram), whole(bias))),
    )
    return with_steps(with_buffers(plan, false, ram), *steps), graph


@attack("of role scratch is of tensor")
def scratch_as_a_moves_source() -> Subject:
    """A move out of scratch over the input: what lies there is not scratch's to give."""
    plan, graph = layer()
    twin = replace(scratch(0, tensor="x"), map=plan.buffer["x"].map)
    copy = Buffer("copy", "x", "sram", (4,), 8, packed((4,), 8, 2 * 64))
    step = step_of(plan)
    compute = replace(step, ins=(whole(copy), *step.ins[1:]))
    plan = with_buffers(plan, twin, copy)
    return with_steps(plan, Move(whole(twin), whole(copy)), compute), graph


@attack("of role scratch is of tensor")
def scratch_as_a_moves_target() -> Subject:
    """A move into scratch that reverses the input in the place of another buffer."""
    plan, graph = layer()
    turned = replace(scratch(0, tensor="x"), map=Table((70, 68, 66, 64)))
    copy = Buffer("copy", "x", "sram", (4,), 8, packed((4,), 8, 64))
    step = step_of(plan)
    compute = replace(step, ins=(whole(copy), *step.ins[1:]))
    plan = with_buffers(plan, turned, copy)
    return with_steps(plan, Move(whole(plan.buffer["x"]), whole(turned)), compute), graph


@attack("race in sram")
def scratch_used_by_two_tracks() -> Subject:
    """Two kernels run side by side in the same scratch."""
    plan, graph = layer()
    z = Buffer("z", "y", "sram", (3,), 16, packed((3,), 16, 2 * 32))
    plan = with_buffers(plan, z, scratch(64))
    one = replace(step_of(plan), scratch=("scratch",))
    two = replace(one, out=whole(z))
    return replace(plan, tracks=(Track("a", (one,)), Track("b", (two,)))), graph


@attack("race in sram")
def scratch_destroys_another_tracks_input() -> Subject:
    """One track's scratch lies on what the other one reads; whether it is first, timing decides."""
    plan, graph = layer()
    copy = Buffer("copy", "x", "sram", (4,), 8, packed((4,), 8, 2 * 64))
    z = Buffer("z", "y", "sram", (3,), 16, packed((3,), 16, 2 * 32))
    one = step_of(plan)
    reads = replace(one, ins=(whole(copy), *one.ins[1:]))
    destroys = replace(one, out=whole(z), scratch=("scratch",))
    tracks = (Track("a", (Move(one.ins[0], whole(copy)), reads)), Track("b", (destroys,)))
    return replace(with_buffers(plan, copy, z, scratch(64)), tracks=tracks), graph


@attack("overlaps acc")
def scratch_before_anything_is_cleared() -> Subject:
    """Scratch of the second half lies on the sums of the first."""
    plan, graph = halves()
    clear, first, second, finish = plan.tracks[0].steps
    assert isinstance(clear, Clear) and isinstance(second, Compute)
    plan = with_buffers(plan, scratch(27, 2))
    return with_steps(plan, clear, first, replace(second, scratch=("scratch",)), finish), graph
