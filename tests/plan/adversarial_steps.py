"""Attacks by amount: loops that never end, nests that are too deep, steps beyond every tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipeline.plan.vocabulary import (
    Compute,
    Lin,
    Loop,
    Move,
    Plan,
    Signal,
    Slice,
    Step,
    Track,
    Wait,
    whole,
)
from tests.plan.adversarial import (
    Subject,
    activation,
    attack,
    changed,
    halves,
    layer,
    made,
    on_layer,
    part,
    plan_with,
    step,
    step_of,
    with_buffers,
    with_steps,
)


def beside(*steps: Step) -> Subject:
    """The layer, and ``steps`` after it."""
    plan, graph = layer()
    return with_steps(plan, step_of(plan), *steps), graph


def nested(depth: int, body: tuple[Step, ...], count: int = 1) -> tuple[Step, ...]:
    for level in range(depth):
        body = (Loop(f"v{level}", count, body),)
    return body


made(
    # Nothing, 10**12 times.
    ("loop_without_a_body", "runs nothing", lambda: beside(Loop("k", 10**12, ()))),
    # Nothing, 10**6 times 10**6 times.
    (
        "loop_of_empty_loops",
        "runs nothing",
        lambda: beside(Loop("k", 10**6, (Loop("l", 10**6, ()),))),
    ),
    # A loop of no turns, 10**12 times.
    (
        "loop_of_loops_that_do_not_turn",
        "runs nothing",
        lambda: beside(Loop("k", 10**12, (Loop("l", 0, (Signal("s"),)),))),
    ),
    # Nobody waits for 10**12 signals.
    ("loop_that_only_signals", "more than", lambda: beside(Loop("k", 10**12, (Signal("s"),)))),
    # A wait that is always met, 10**12 times.
    ("loop_that_only_waits", "more than", lambda: beside(Loop("k", 10**12, (Wait("s", 0),)))),
)


@attack("more than")
def loop_that_computes_for_ever() -> Subject:
    """The same layer, 10**12 times."""
    plan, graph = layer()
    return with_steps(plan, Loop("k", 10**12, (step_of(plan),))), graph


@attack("more than")
def loop_of_empty_slices() -> Subject:
    """10**12 moves of nothing."""
    nothing = Slice("x", (0,), (0,))
    return beside(Loop("k", 10**12, (Move(nothing, nothing),)))


made(
    # A count that no machine's integer holds.
    ("loop_of_2_to_the_70_turns", "more than", lambda: beside(Loop("k", 1 << 70, (Signal("s"),)))),
    # Ten turns, thirty deep: 10**30 signals in little text.
    ("loops_that_multiply", "more than", lambda: beside(*nested(30, (Signal("s"),), count=10))),
    # 3,000 loops of one turn in one another.
    ("loops_too_deep", "nested more than", lambda: beside(*nested(3000, (Signal("s"),)))),
    # 3,000 loops in one another around nothing.
    ("empty_loops_too_deep", "nested more than", lambda: beside(*nested(3000, ()))),
    # 300 loops: within Python's stack, but a C compiler need not take more than 127 levels.
    ("loops_too_deep_for_c", "nested more than", lambda: beside(*nested(300, (Signal("s"),)))),
)


@attack("no more than 16 tracks")
def tracks_without_end() -> Subject:
    """200,000 engines that have nothing to do: clocks of all of them against all."""
    plan, graph = layer()
    idle = tuple(Track(f"t{n}", ()) for n in range(200_000))
    return replace(plan, tracks=(*plan.tracks, *idle)), graph


@attack("runs nothing")
def negative_number_of_turns() -> Subject:
    """-1 turns."""
    return beside(Loop("k", -1, (Signal("s"),)))


@attack("inside of another loop")
def two_loops_of_one_variable() -> Subject:
    """Which k does the inner slice mean?"""
    plan, graph = halves()
    clear, _, _, finish = plan.tracks[0].steps
    turn = part(plan.buffer["acc"], Lin(0, (("k", 2),)))
    return with_steps(plan, clear, Loop("k", 1, (Loop("k", 2, (turn,)),)), finish), graph


@attack("has no name")
def variable_without_a_name() -> Subject:
    """A loop over the empty name."""
    plan, graph = halves()
    clear, _, _, finish = plan.tracks[0].steps
    turn = part(plan.buffer["acc"], Lin(0, (("", 2),)))
    return with_steps(plan, clear, Loop("", 2, (turn,)), finish), graph


@attack("there is no loop k around")
def variable_of_another_loop() -> Subject:
    """After the loop over k, k is used once more."""
    plan, graph = halves()
    clear, _, _, finish = plan.tracks[0].steps
    turn = part(plan.buffer["acc"], Lin(0, (("k", 2),)))
    return with_steps(plan, clear, Loop("k", 1, (turn,)), turn, finish), graph


def unknown(change: Callable[[Plan, Lin], Plan]) -> Subject:
    plan, graph = layer()
    return change(plan, Lin(0, (("nobody", 1),))), graph


made(
    # ``lo`` depends on a loop that is not there.
    (
        "unknown_variable_in_a_slice",
        "there is no loop nobody around",
        lambda: unknown(lambda plan, n: changed(plan, out=Slice("y", (n,), (3,)))),
    ),
    # Nothing is computed, but from where?
    (
        "unknown_variable_in_an_empty_slice",
        "there is no loop nobody around",
        lambda: unknown(
            lambda plan, n: with_steps(
                plan, step_of(plan), Move(Slice("x", (n,), (0,)), Slice("x", (n,), (0,)))
            )
        ),
    ),
    # ``copy`` depends on a loop that is not there.
    (
        "unknown_variable_of_a_copy",
        "there is no loop nobody around",
        lambda: unknown(
            lambda plan, n: changed(plan, out=replace(whole(plan.buffer["y"]), copy=n))
        ),
    ),
    # ``frame`` depends on a loop that is not there.
    (
        "unknown_variable_of_a_frame",
        "there is no loop nobody around",
        lambda: unknown(lambda plan, n: changed(plan, frame=n)),
    ),
    # ``at_least`` depends on a loop that is not there.
    (
        "unknown_variable_of_a_wait",
        "there is no loop nobody around",
        lambda: unknown(lambda plan, n: with_steps(plan, step_of(plan), Wait("s", n))),
    ),
)


@attack("there is no loop nobody around")
def unknown_variable_times_zero() -> Subject:
    """Zero times a variable that is not there."""
    plan, graph = layer()
    return changed(plan, out=Slice("y", (Lin(0, (("nobody", 0),)),), (3,))), graph


@attack("runs nothing")
def unknown_variable_in_a_loop_that_never_turns() -> Subject:
    """No step is walked, but generated code would name the variable."""
    empty = Slice("x", (Lin(0, (("nobody", 1),)),), (1,))
    return beside(Loop("k", 0, (Move(empty, empty),)))


@attack(None)
def computes_past_the_end() -> Subject:
    """Outputs 3 … 5 of three."""
    plan, graph = layer()
    past = replace(step_of(plan), out=Slice("y", (3,), (3,)))
    return with_steps(plan, step_of(plan), past), graph


@attack(None)
def computes_before_the_beginning() -> Subject:
    """Outputs -3 … -1."""
    plan, graph = layer()
    before = replace(step_of(plan), out=Slice("y", (-3,), (3,)))
    return with_steps(plan, step_of(plan), before), graph


@attack("indices along an axis")
def computes_a_negative_number() -> Subject:
    """-1 outputs."""
    plan, graph = layer()
    return with_steps(
        plan, step_of(plan), replace(step_of(plan), out=Slice("y", (1,), (-1,)))
    ), graph


@attack(None)
def moves_past_the_end() -> Subject:
    """Elements 4 … 7 of four."""
    plan, graph = layer()
    copy = activation("copy", "x", (4,), 8, 64)
    plan = with_buffers(plan, copy)
    move = Move(Slice("x", (4,), (4,)), Slice("copy", (4,), (4,)))
    return with_steps(plan, step_of(plan), move), graph


@attack(None)
def a_loop_moves_past_the_end() -> Subject:
    """Element by element, and two more than there are."""
    plan, graph = layer()
    copy = activation("copy", "x", (4,), 8, 64)
    plan, k = with_buffers(plan, copy), Lin(0, (("k", 1),))
    move = Move(Slice("x", (k,), (1,)), Slice("copy", (k,), (1,)))
    return with_steps(plan, step_of(plan), Loop("k", 6, (move,))), graph


@attack("lies outside of the tensor")
def reads_past_the_end() -> Subject:
    """The whole layer, its input's slice beyond the input."""
    plan, graph = layer()
    _, *fixed = step_of(plan).ins
    return changed(plan, ins=(Slice("x", (4,), (4,)), *fixed)), graph


@attack("nested more than")
def a_step_that_is_its_own_body() -> Subject:
    """A loop inside itself cannot be written down, but it can be made."""
    loop = Loop("k", 1, ())
    object.__setattr__(loop, "body", (loop,))
    return beside(loop)


on_layer(
    # The layer from nothing.
    ("compute_without_inputs", "is incomplete", step(ins=())),
    # The output is never made.
    ("no_steps", "a plan has 1 to", lambda plan: with_steps(plan)),
    # Nobody does anything.
    ("no_tracks", "a plan has 1 to", plan_with(tracks=())),
)


@attack("finds garbage")
def part_of_the_output() -> Subject:
    """Two of three outputs."""
    plan, graph = layer()
    step = step_of(plan)
    assert isinstance(step, Compute)
    return changed(plan, out=Slice("y", (0,), (2,))), graph
