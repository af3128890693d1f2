"""Attacks on time: races, deadlocks, counters, granules, and frames taken for one another."""

from __future__ import annotations

from dataclasses import replace

from pipeline.hardware import Memory
from pipeline.plan.vocabulary import (
    Buffer,
    Compute,
    Index,
    Lin,
    Loop,
    Move,
    Plan,
    Signal,
    Slice,
    Step,
    Track,
    Wait,
    packed,
    whole,
)
from tests.plan.adversarial import (
    Subject,
    activation,
    attack,
    edited,
    halves,
    layer,
    rebuffered,
    scratch,
    step_of,
    with_buffers,
    with_steps,
)


def side_by_side(plan: Plan, *tracks: tuple[Step, ...]) -> Plan:
    named = tuple(Track(f"track{n}", steps) for n, steps in enumerate(tracks))
    return replace(plan, tracks=named)


def fetched() -> Subject:
    """The weights come from a card in one move; ``io`` signals, ``cpu`` waits."""
    plan, graph = layer()
    weight = plan.buffer["y.weight"]
    card = replace(weight, memory="card")
    ram = replace(weight, name="ram", memory="sram", role="activation", map=packed((3, 4), 8, 128))
    step = step_of(plan)
    use = replace(step, ins=(step.ins[0], whole(ram), step.ins[2]))
    io, cpu = (Move(whole(card), whole(ram)), Signal("there")), (Wait("there", 1), use)
    plan = edited(plan, *io, *cpu, buffers=(card, ram))
    return side_by_side(plan, io, cpu), graph


def two_frames() -> Plan:
    """Two inputs and two outputs, one layer for each."""
    plan, _ = layer()
    plan = rebuffered(plan, "x", copies=2, copy_stride=2 * 4, map=packed((4,), 8, 64))
    plan = replace(rebuffered(plan, "y", copies=2, copy_stride=2 * 8), frames=2)
    return with_steps(plan, *(of_frame(plan, n, n, n) for n in (0, 1)))


def of_frame(plan: Plan, frame: Index, source: Index, target: Index) -> Step:
    step = step_of(layer()[0])
    x, y = plan.buffer["x"], plan.buffer["y"]
    out, read = replace(whole(y), copy=target), replace(whole(x), copy=source)
    return replace(step, frame=frame, out=out, ins=(read, *step.ins[1:]))


# --- counters


@attack("deadlock")
def wait_for_a_counter_that_nobody_signals() -> Subject:
    """For ever."""
    plan, graph = layer()
    return with_steps(plan, Wait("never", 1), step_of(plan)), graph


@attack("deadlock")
def wait_for_one_signal_too_many() -> Subject:
    """One arrives, two are wanted."""
    plan, graph = fetched()
    io, cpu = plan.tracks
    return side_by_side(plan, io.steps, (Wait("there", 2), *cpu.steps[1:])), graph


@attack("race in sram")
def wait_for_nothing() -> Subject:
    """A wait that is always met orders nothing."""
    plan, graph = fetched()
    io, cpu = plan.tracks
    return side_by_side(plan, io.steps, (Wait("there", 0), *cpu.steps[1:])), graph


@attack("race in sram")
def wait_for_less_than_nothing() -> Subject:
    """A negative level is always met; Python takes signal -2 for the one before the last."""
    plan, graph = fetched()
    io, cpu = plan.tracks
    return side_by_side(plan, io.steps, (Wait("there", -1), *cpu.steps[1:])), graph


@attack("deadlock")
def wait_for_oneself() -> Subject:
    """The signal comes after the wait for it, on the same track."""
    plan, graph = layer()
    return with_steps(plan, Wait("s", 1), step_of(plan), Signal("s")), graph


@attack("deadlock")
def wait_for_each_other() -> Subject:
    """Each track waits for the other one to begin."""
    plan, graph = layer()
    a, b = (Wait("b", 1), Signal("a")), (Wait("a", 1), step_of(plan), Signal("b"))
    return side_by_side(plan, a, b), graph


@attack("is signalled by two tracks")
def counter_of_two_tracks() -> Subject:
    """Two tracks signal one counter: whose signal was the first?"""
    plan, graph = fetched()
    io, cpu = plan.tracks
    return side_by_side(plan, io.steps, cpu.steps, (Signal("there"),)), graph


@attack("race in sram")
def signal_before_the_work() -> Subject:
    """The weights are said to be there before they are fetched."""
    plan, graph = fetched()
    io, cpu = plan.tracks
    return side_by_side(plan, io.steps[::-1], cpu.steps), graph


@attack("race in sram")
def wait_after_the_work() -> Subject:
    """The weights are waited for after they were used."""
    plan, graph = fetched()
    io, cpu = plan.tracks
    return side_by_side(plan, io.steps, cpu.steps[::-1]), graph


@attack("race in sram")
def no_wait() -> Subject:
    """In the order of the walk all is well."""
    plan, graph = fetched()
    io, cpu = plan.tracks
    return side_by_side(plan, io.steps, cpu.steps[1:]), graph


# --- races


@attack("race in sram")
def two_tracks_write_one_place() -> Subject:
    """Both write the same output, even the same values."""
    plan, graph = layer()
    return side_by_side(plan, (step_of(plan),), (step_of(plan),)), graph


@attack("race in sram")
def two_tracks_clear_one_place() -> Subject:
    """One adds up what the other one clears."""
    plan, graph = halves()
    steps = plan.tracks[0].steps
    return side_by_side(plan, steps, steps[:1]), graph


@attack("race in sram")
def two_tracks_add_to_one_place() -> Subject:
    """Each adds its half; sums are read and written again."""
    plan, graph = halves()
    clear, first, second, finish = plan.tracks[0].steps
    one = (clear, Signal("open"), first, Wait("second", 1), finish)
    return side_by_side(plan, one, (Wait("open", 1), second, Signal("second"))), graph


@attack("race in sram")
def two_tracks_in_one_byte() -> Subject:
    """Neighbouring 8-bit elements share no byte, but a granule of 4."""
    plan, graph = layer()
    first, *others = plan.memories
    copy = activation("copy", "x", (4,), 8, 64)
    plan = replace(with_buffers(plan, copy), memories=(replace(first, granule_bytes=4), *others))
    moves = [Move(Slice("x", (n,), (2,)), Slice("copy", (n,), (2,))) for n in (0, 2)]
    return side_by_side(plan, (step_of(plan), moves[0]), (moves[1],)), graph


@attack("race in card")
def two_tracks_in_one_block_of_a_card() -> Subject:
    """Different bytes of one block: who writes last writes back what the other one had read."""
    plan, graph = layer()
    out = replace(activation("out", "x", (4,), 8, 0), memory="card")
    plan = with_buffers(plan, out)
    moves = [Move(Slice("x", (n,), (2,)), Slice("out", (n,), (2,))) for n in (0, 2)]
    return side_by_side(plan, (step_of(plan), moves[0]), (moves[1],)), graph


@attack("race in sram")
def constant_beside_what_another_track_writes() -> Subject:
    """The bias shares a granule with the output."""
    plan, graph = layer()
    first, *others = plan.memories
    bias = replace(plan.buffer["y.bias"], memory="sram", map=packed((3,), 8, 2 * 14))
    plan = replace(with_buffers(plan, bias), memories=(replace(first, granule_bytes=8), *others))
    copy = replace(bias, name="copy", role="activation", map=packed((3,), 8, 2 * 64))
    plan = with_buffers(plan, copy)
    return side_by_side(plan, (step_of(plan),), (Move(whole(bias), whole(copy)),)), graph


@attack("race in stream")
def two_tracks_read_one_stream() -> Subject:
    """Which one gets the first element?"""
    plan, graph = layer()
    arriving = Buffer("arriving", "x", "stream", (4,), 8, packed((4,), 8))
    plan = replace(with_buffers(plan, arriving), resident=("arriving", *plan.resident[1:]))
    moves = [Move(Slice("arriving", (n,), (2,)), Slice("x", (n,), (2,))) for n in (0, 2)]
    cpu = (moves[0], Wait("second", 1), step_of(plan))
    return side_by_side(plan, cpu, (moves[1], Signal("second"))), graph


@attack("race in sram")
def input_overwritten_by_another_track() -> Subject:
    """The next input is fetched while this one is read."""
    plan, graph = layer()
    copy = activation("copy", "x", (4,), 8, 64)
    plan = with_buffers(plan, copy)
    there = (Move(whole(plan.buffer["x"]), whole(copy)), Signal("kept"))
    back = Move(whole(copy), whole(plan.buffer["x"]))
    return side_by_side(plan, (*there, step_of(plan)), (Wait("kept", 1), back)), graph


@attack("race in sram")
def scratch_beside_another_tracks_work() -> Subject:
    """Scratch lies where the other track fetches the weights to."""
    plan, graph = fetched()
    io, (wait, use) = plan.tracks[0].steps, plan.tracks[1].steps
    z = Buffer("z", "y", "sram", (3,), 16, packed((3,), 16, 2 * 32))
    flashed = replace(plan.buffer["y.weight"], name="flashed", memory="flash")
    x, _, bias = step_of(layer()[0]).ins
    first = Compute("y", whole(z), (x, whole(flashed), bias), scratch=("scratch",))
    plan = with_buffers(plan, z, scratch(66), flashed)
    plan = replace(plan, resident=(*plan.resident, "flashed"))
    return side_by_side(plan, io, (first, wait, use)), graph


# --- frames


@attack("finds 8-bit element of x of frame 0 number 0")
def frame_of_another_copy() -> Subject:
    """Frame 1 is computed from frame 0's input."""
    plan = two_frames()
    return with_steps(plan, of_frame(plan, 0, 0, 0), of_frame(plan, 1, 0, 1)), layer()[1]


@attack("finds 16-bit element of y of frame 1 number 0")
def frames_exchanged_at_the_end() -> Subject:
    """Frame 0's output in copy 1 and the other way round."""
    plan = two_frames()
    return with_steps(plan, of_frame(plan, 0, 0, 1), of_frame(plan, 1, 1, 0)), layer()[1]


@attack("finds 16-bit element of y of frame 0 number 0")
def one_frame_twice() -> Subject:
    """Frame 0 for both."""
    plan = two_frames()
    return with_steps(plan, of_frame(plan, 0, 0, 0), of_frame(plan, 0, 0, 1)), layer()[1]


@attack("is of frame 2 of")
def frame_that_does_not_exist() -> Subject:
    """A third frame of two."""
    plan = two_frames()
    return with_steps(plan, *plan.tracks[0].steps, of_frame(plan, 2, 0, 0)), layer()[1]


@attack("is of frame -1 of")
def negative_frame() -> Subject:
    """Frame -1, which Python takes for the last one."""
    plan = two_frames()
    return with_steps(plan, of_frame(plan, 0, 0, 0), of_frame(plan, -1, 1, 1)), layer()[1]


@attack("is of frame 7 of 1")
def frame_of_an_empty_step() -> Subject:
    """Nothing is moved, for a frame that there is not."""
    plan, graph = layer()
    none = Slice("x", (0,), (0,))
    return with_steps(plan, step_of(plan), Move(none, none, frame=7)), graph


@attack("finds 8-bit element of x of frame 0 number 0")
def frames_moved_into_one_another() -> Subject:
    """A move takes frame 0's input to where frame 1's was."""
    plan = two_frames()
    x = plan.buffer["x"]
    move = Move(replace(whole(x), copy=0), replace(whole(x), copy=1))
    return with_steps(plan, move, *plan.tracks[0].steps), layer()[1]


@attack("copies for 2 frames")
def frames_without_copies_of_the_output() -> Subject:
    """Two frames, one output."""
    plan = rebuffered(two_frames(), "y", copies=1, copy_stride=0)
    return plan, layer()[1]


@attack("copies for 2 frames")
def frames_without_copies_of_the_input() -> Subject:
    """Two frames, one input."""
    plan = rebuffered(two_frames(), "x", copies=1, copy_stride=0)
    return plan, layer()[1]


@attack("finds garbage")
def frames_that_nobody_computes() -> Subject:
    """Two frames, a step for the first."""
    plan = two_frames()
    return with_steps(plan, plan.tracks[0].steps[0]), layer()[1]


@attack("is of frame 2 of")
def a_loop_over_one_frame_too_many() -> Subject:
    """Copies count modulo their number, so only the frame tells."""
    plan, n = two_frames(), Lin(0, (("n", 1),))
    return with_steps(plan, Loop("n", 3, (of_frame(plan, n, n, n),))), layer()[1]


@attack("Memory.granule_bytes is 0.5")
def a_card_of_another_granule() -> Subject:
    """The card's blocks are 16 bytes, the plan's memory says 0.5."""
    plan, graph = fetched()
    *others, card = plan.memories
    assert isinstance(card, Memory)
    half = replace(card, granule_bytes=0.5)  # type: ignore[arg-type]
    return replace(plan, memories=(*others, half)), graph


@attack("only moves can")
def a_kernel_reads_a_card() -> Subject:
    """Weights multiplied where they lie, on the card."""
    plan, graph = layer()
    return rebuffered(plan, "y.weight", memory="card"), graph


@attack("only moves can")
def a_kernel_writes_a_card() -> Subject:
    """The output goes to the card, element by element."""
    plan, graph = layer()
    return rebuffered(plan, "y", memory="card"), graph


@attack("there is no loop k around")
def wait_for_a_loop_that_is_over() -> Subject:
    """The level depends on a variable of an earlier loop."""
    plan, graph = layer()
    over = Loop("k", 1, (Signal("s"),))
    return with_steps(plan, over, Wait("s", Lin(0, (("k", 1),))), step_of(plan)), graph
