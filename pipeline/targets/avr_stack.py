"""The deepest stack an AVR program can need, exactly, from its machine code.

Every path from the reset vector is walked once with two numbers: how many bytes are on the stack
since the function was entered, and, where a function keeps a frame, how deep the frame pointer Y
points. A call costs its return address and what the callee needs. That is exact for code
without recursion, computed jumps and interrupts; code with one of them is refused.
Opcodes: Atmel-0856, AVR Instruction Set Manual.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pipeline.errors import ThimbleError

NEAR_BYTES = 1 << 17
"""Most bytes of flash whose instructions have numbers of 16 bits: return addresses of 2 bytes."""
SPL, SPH = 0x3D, 0x3E
Y_LOW, Y_HIGH = 28, 29
SEI = 0x9478
RETURNS = (0x9508, 0x9518)
COMPUTED = {0x9409: "ijmp", 0x9509: "icall", 0x9419: "eijmp", 0x9519: "eicall"}
MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class Bound:
    """Bytes below the initial stack pointer at worst, and the calls that lead there."""

    bytes: int
    path: tuple[str, ...]


SBC_R29_R1, SBCI_R29_0 = 0x09D1, 0x40D0
"""The same: r1 is 0 wherever C runs."""


IN_SREG, CLI, OUT_SREG = 0xB60F, 0x94F8, 0xBE0F
"""Instructions that save, clear and restore interrupts, with r0."""


@dataclass(frozen=True)
class State:
    """State at an instruction: bytes pushed since entry; the depths Y's halves point at, if known;
    and the halves that have been pushed, as (depth, what it points at)."""

    depth: int = 0
    y_low: int | None = None
    y_high: int | None = None
    saved: frozenset[tuple[int, int | None]] = frozenset()

    def join(self, other: State) -> State:
        return State(
            max(self.depth, other.depth),
            self.y_low if self.y_low == other.y_low else None,
            self.y_high if self.y_high == other.y_high else None,
            self.saved & other.saved,
        )

    def cut(self, depth: int) -> State:
        kept = frozenset(entry for entry in self.saved if entry[0] <= depth)
        return replace(self, depth=depth, saved=kept)

    def pushed(self, register: int) -> State:
        depth = self.depth + 1
        y = {Y_LOW: self.y_low, Y_HIGH: self.y_high}
        saved = self.saved | {(depth, y[register])} if register in y else self.saved
        return replace(self, depth=depth, saved=saved)

    def popped(self, register: int) -> State:
        value = dict(self.saved).get(self.depth)
        state = self.cut(self.depth - 1)
        if register == Y_LOW:
            return replace(state, y_low=value)
        return replace(state, y_high=value) if register == Y_HIGH else state


def return_bytes(flash_bytes: int) -> int:
    """Return the bytes of the address that a call pushes, on a chip with so much flash."""
    return 2 if flash_bytes <= NEAR_BYTES else 3


def bound(flash: bytes, labels: Mapping[int, str], entry: int = 0, return_bytes: int = 2) -> Bound:
    """Return the bound of the program in ``flash`` (from address 0), named by ``labels`` (by
    address), or of the function at ``entry``, from its return address, of ``return_bytes``, on.

    Raises:
        ThimbleError: for recursion, a computed jump, interrupts, or a stack pointer set to what
            is not known.
    """
    return _Walk(flash, labels, return_bytes).function(entry)


class _Walk:
    def __init__(self, flash: bytes, labels: Mapping[int, str], return_bytes: int) -> None:
        self.flash = flash
        self.labels = labels
        self.return_bytes = return_bytes
        self.known: dict[int, Bound] = {}
        self.entered: list[int] = []

    def function(self, entry: int) -> Bound:
        if entry in self.entered:
            loop = [self.name(a) for a in [*self.entered[self.entered.index(entry) :], entry]]
            raise ThimbleError(f"the stack has no bound: recursion {' -> '.join(loop)}")
        if entry not in self.known:
            self.entered.append(entry)
            self.known[entry] = self._deepest(entry)
            self.entered.pop()
        return self.known[entry]

    def name(self, address: int) -> str:
        return self.labels.get(address, f"{address:#x}")

    def _deepest(self, entry: int) -> Bound:
        """Fixed point over the function's instructions, tail jumps followed."""
        states = {entry: State()}
        work = [entry]
        best = Bound(0, (self.name(entry),))
        while work:
            pc = work.pop()
            state, callee, following = self._step(pc, states[pc])
            below = self.function(callee) if callee is not None else None
            deepest = state.depth + (self.return_bytes + below.bytes if below else 0)
            if deepest > best.bytes or (deepest == best.bytes and below and len(best.path) == 1):
                best = Bound(deepest, (self.name(entry), *(below.path if below else ())))
            if deepest > MOST_BYTES:
                raise ThimbleError(f"the stack has no bound: {self.name(entry)} pushes in a loop")
            for after in following:
                joined = state.join(states[after]) if after in states else state
                if states.get(after) != joined:
                    states[after] = joined
                    work.append(after)
        return best

    def _word(self, pc: int) -> int:
        if not 0 <= pc <= len(self.flash) - 2:
            raise ThimbleError(f"the program runs out of its flash at {pc:#x}")
        return int.from_bytes(self.flash[pc : pc + 2], "little")

    def _length(self, pc: int) -> int:
        op = self._word(pc)
        two_words = op & 0xFE0E in (0x940C, 0x940E) or op & 0xFC0F == 0x9000  # jmp call lds sts
        return 4 if two_words else 2

    def _step(self, pc: int, state: State) -> tuple[State, int | None, Iterator[int]]:
        """The state after the instruction at ``pc``, the function it calls, where it goes on."""
        op = self._word(pc)
        after = pc + self._length(pc)
        if dropped := self._dropped(pc):
            count, words = dropped
            return state.cut(state.depth - count), None, iter((pc + 2 * words,))
        if op in RETURNS:
            return state, None, iter(())
        if op in COMPUTED or op == SEI:
            what = (
                "enables interrupts"
                if op == SEI
                else f"jumps to a computed address ({COMPUTED[op]})"
            )
            raise ThimbleError(f"the stack has no bound: {self.name(self.entered[-1])} {what}")
        if op & 0xF000 in (0xC000, 0xD000):  # rjmp rcall
            target = after + 2 * _signed(op & 0xFFF, 12)
            return self._jump(state, target, after, is_call=bool(op & 0x1000))
        if op & 0xFE0C == 0x940C:  # jmp call
            target = ((op >> 3 & 0x3E | op & 1) << 16 | self._word(pc + 2)) * 2
            return self._jump(state, target, after, is_call=bool(op & 2))
        if op & 0xF800 == 0xF000:  # br..
            return state, None, iter((after, after + 2 * _signed(op >> 3 & 0x7F, 7)))
        if op & 0xFC00 == 0x1000 or op & 0xFC08 == 0xFC00 or op & 0xFD00 == 0x9900:  # skips
            return state, None, iter((after, after + self._length(after)))
        return self._moved(op, state), None, iter((after,))

    def _jump(
        self, state: State, target: int, after: int, *, is_call: bool
    ) -> tuple[State, int | None, Iterator[int]]:
        if not is_call:
            return state, None, iter((target,))
        if target == after:  # gcc's way to take some bytes of stack
            return replace(state, depth=state.depth + self.return_bytes), None, iter((after,))
        return state, target, iter((after,))

    def _dropped(self, pc: int) -> tuple[int, int] | None:
        """Bytes of arguments that the instructions from ``pc`` on take off the stack, and how many
        words these are: in low, SPL; in high, SPH; adiw low, n, or subi low and sbci high; in r0,
        SREG; cli; out SPH, high; out SREG, r0; out SPL, low."""
        held = self.flash[pc : pc + 18]
        words = [int.from_bytes(held[n : n + 2], "little") for n in range(0, len(held), 2)]
        low = words[0] >> 4 & 0x1F
        if len(words) < 9 or low == Y_LOW or words[:2] != [_in(low, SPL), _in(low + 1, SPH)]:
            return None
        count, used = _raised(low, words[2], words[3])
        end = [IN_SREG, CLI, _out(low + 1, SPH), OUT_SREG, _out(low, SPL)]
        if not count or words[2 + used : 7 + used] != end:
            return None
        return count, 7 + used

    def _moved(self, op: int, state: State) -> State:
        """Pushes, pops, and what avr-gcc's frames do to SP and Y."""
        op = SBCI_R29_0 if op == SBC_R29_R1 else op
        register = op >> 4 & 0x1F
        if op & 0xFE0F == 0x920F:
            return state.pushed(register)
        if op & 0xFE0F == 0x900F:
            return state.popped(register)
        if op & 0xF800 == 0xB000 and register in (Y_LOW, Y_HIGH):  # in
            io = op >> 5 & 0x30 | op & 0xF
            if register == Y_LOW:
                return replace(state, y_low=state.depth if io == SPL else None)
            return replace(state, y_high=state.depth if io == SPH else None)
        if op & 0xF800 == 0xB800 and op >> 5 & 0x30 | op & 0xF == SPL:  # out SPL
            return state.cut(self._frame(state, register))
        if op & 0xFE30 == 0x9620:  # adiw sbiw r28
            by = (op >> 2 & 0x30 | op & 0xF) * (1 if op & 0x100 else -1)
            return replace(state, y_low=_add(state.y_low, by), y_high=_add(state.y_high, by))
        if op & 0xF000 in (0x4000, 0x5000) and register & 0xF in (Y_LOW & 0xF, Y_HIGH & 0xF):
            return _subtract_immediate(op, state)
        if _writes(op) & {Y_LOW, Y_HIGH}:
            return replace(state, y_low=None, y_high=None)
        return state

    def _frame(self, state: State, register: int) -> int:
        if register == Y_LOW and state.y_low is not None and state.y_low == state.y_high:
            return state.y_low
        if len(self.entered) == 1 and state.depth == 0:  # the start-up code sets it first of all
            return 0
        raise ThimbleError(
            f"the stack has no bound: {self.name(self.entered[-1])} sets SP to what is not known"
        )


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _in(register: int, io: int) -> int:
    return 0xB000 | (io & 0x30) << 5 | register << 4 | io & 0xF


def _out(register: int, io: int) -> int:
    return 0x0800 | _in(register, io)


def _raised(low: int, first: int, second: int) -> tuple[int, int]:
    """Return by how much the registers from ``low`` on grow, in how many instructions; 0: not."""
    if first & 0xFF00 == 0x9600 and 24 + (first >> 3 & 6) == low:  # adiw
        return first >> 2 & 0x30 | first & 0xF, 1
    subi, sbci = 0x5000 | (low & 0xF) << 4, 0x4000 | (low + 1 & 0xF) << 4
    if low >= 16 and (first & 0xF0F0, second & 0xF0F0) == (subi, sbci):
        value = _immediate(first) | _immediate(second) << 8
        return -value & 0xFFFF, 2
    return 0, 0


def _add(depth: int | None, by: int) -> int | None:
    return None if depth is None else depth + by


def _immediate(op: int) -> int:
    return op >> 4 & 0xF0 | op & 0xF


def _subtract_immediate(op: int, state: State) -> State:
    """``subi r28, low`` then ``sbci r29, high``: together Y -= the 16-bit number."""
    value = _immediate(op)
    is_low_half = op & 0xF0 == 0xC0
    if op & 0xF000 == 0x5000 and is_low_half:
        return replace(state, y_low=_add(state.y_low, value))
    if op & 0xF000 == 0x4000 and not is_low_half and state.y_low is not None:
        low = state.y_low + _signed(value, 8) * 256
        return replace(state, y_low=low, y_high=low)
    return replace(state, y_low=None, y_high=None)


def _writes(op: int) -> set[int]:
    """The registers a load, move or arithmetic instruction writes (those that may name r28)."""
    register = op >> 4 & 0x1F
    if op & 0xFF00 == 0x0100:  # movw
        return {2 * (register & 0xF), 2 * (register & 0xF) + 1}
    if op & 0xF000 in (0xE000, 0x6000, 0x7000):  # ldi ori andi
        return {16 + (register & 0xF)}
    compares = op & 0xFC00 in (0x0400, 0x1400)
    arithmetic = 0x0800 <= op < 0x3000 and not compares
    loads = op & 0xFE00 == 0x9000 or op & 0xD200 == 0x8000 or op & 0xFE08 == 0x9400
    written = {register} if arithmetic or loads else set()
    if op & 0xFC0F in (0x9009, 0x900A):  # ld/st through Y+ or -Y
        written |= {Y_LOW, Y_HIGH}
    return written
