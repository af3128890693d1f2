"""The deepest stack a Thumb program can need, from its disassembly.

Every path from the reset handler is walked once with the number of bytes on the stack since the
function was entered; where paths meet, the larger one counts. A call costs what the callee needs:
its return address is in a register. That bounds code without recursion, computed jumps and arrays
of variable length; code with one of them is refused, as is any instruction that moves the stack
pointer in a way not known here. One interrupt may come at the deepest point: what the core stacks
then, and its handler's bound, are added (a Cortex-M33 without TrustZone in use stacks no more than
a Cortex-M4; tests/targets/test_interrupted_stack.py measures all of it). Mnemonics, frames: Armv7-M
Architecture Reference Manual, A7 and B1.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Never

from pipeline.errors import ThimbleError
from pipeline.targets.avr_stack import Bound

CONDITIONS = "eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le"
MOST_BYTES = 1 << 20

_LABEL = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
_LINE = re.compile(r"^ *([0-9a-f]+):\t([\w.]+)(?:\t([^@;<]*))?")
_CONDITIONAL = re.compile(rf"^(?:pop|ldmia|bx|ldr|b)(?:{CONDITIONS})$")
_NUMBER = re.compile(r"#(-?\d+)")
_READ_ONLY = re.compile(
    r"^(cmp|cmn|tst|str|strb|strh|strd|push|vpush|vstr|stmia|ldmia|bx|blx|b|bl)$"
)


@dataclass(frozen=True)
class Instruction:
    name: str
    operands: str
    after: int


@dataclass
class Listing:
    """Instructions and words of data by address, functions' names by theirs."""

    code: dict[int, Instruction] = field(default_factory=dict)
    words: dict[int, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Listing:
        """Read the output of ``objdump -d --no-show-raw-insn``."""
        found = cls()
        lines = []
        for line in text.splitlines():
            if label := _LABEL.match(line):
                found.names[int(label[1], 16)] = label[2]
            elif match := _LINE.match(line):
                lines.append((int(match[1], 16), match[2], (match[3] or "").strip()))
        ends = [address for address, _, _ in lines[1:]] + [-1]
        for (address, name, operands), after in zip(lines, ends, strict=True):
            if name.startswith("."):
                found.words[address] = int(operands, 16) if name == ".word" else 0
            else:
                plain = name.removesuffix(".n").removesuffix(".w")
                found.code[address] = Instruction(plain, operands, after)
        return found


def bound(listing: Listing, root: str) -> Bound:
    """Return the bound of what starts at the function ``root``.

    Raises:
        ThimbleError: for recursion, a computed jump, or a stack pointer set to what is not known.
    """
    entries = [address for address, name in listing.names.items() if name == root]
    if not entries:
        raise ThimbleError(f"the linked program has no function {root}")
    return _Walk(listing).function(entries[0]).deepest


INTERRUPT = "port_card_interrupt"
"""The handler that ``firmware/ports/cortex_m`` has where a program swaps with a card."""

FRAME_BYTES = 32 + 4
"""r0 to r3, r12, lr, pc and xpsr, on a stack that is brought to a multiple of 8 bytes."""
FLOATS_BYTES = 72
"""s0 to s15, FPSCR and a word besides: the core keeps room for them once the code has used one."""


def interrupted(listing: Listing, root: str, handler: str = INTERRUPT) -> Bound:
    """``bound``, with an interrupt by ``handler`` at any time if the program has it."""
    deepest = bound(listing, root)
    if handler not in listing.names.values():
        return deepest
    above = bound(listing, handler)
    floats = FLOATS_BYTES if any(op.name.startswith("v") for op in listing.code.values()) else 0
    taken = FRAME_BYTES + floats + above.bytes
    return Bound(deepest.bytes + taken, (*deepest.path, "(interrupt)", *above.path))


@dataclass(frozen=True)
class _Function:
    """``returns``: whether any path comes back to the caller."""

    deepest: Bound
    returns: bool


@dataclass
class _Walk:
    listing: Listing
    known: dict[int, _Function] = field(default_factory=dict)
    entered: list[int] = field(default_factory=list)

    def function(self, entry: int) -> _Function:
        if entry in self.entered:
            loop = [self.name(a) for a in [*self.entered[self.entered.index(entry) :], entry]]
            raise ThimbleError(f"the stack has no bound: recursion {' -> '.join(loop)}")
        if entry not in self.known:
            self.entered.append(entry)
            self.known[entry] = self._deepest(entry)
            self.entered.pop()
        return self.known[entry]

    def name(self, address: int) -> str:
        return self.listing.names.get(address, f"{address:#x}")

    def _deepest(self, entry: int) -> _Function:
        """Fixed point over the function's instructions, tail jumps followed."""
        depths = {entry: 0}
        work = [entry]
        best = Bound(0, (self.name(entry),))
        returns = False
        while work:
            address = work.pop()
            if address not in self.listing.code:
                self._refuse("runs into data")
            op = self.listing.code[address]
            depth = depths[address] + self._pushed(address, op)
            below = self.function(self._target(op)) if self._calls(op) else None
            deepest = depth + (below.deepest.bytes if below else 0)
            if deepest > best.bytes or (deepest == best.bytes and below and len(best.path) == 1):
                best = Bound(deepest, (self.name(entry), *(below.deepest.path if below else ())))
            if deepest > MOST_BYTES:
                self._refuse("pushes in a loop")
            following, comes_back = self._following(op)
            returns |= comes_back
            for after in following if below is None or below.returns else ():
                if depths.get(after, -1) < depth:
                    depths[after] = depth
                    work.append(after)
        return _Function(best, returns)

    def _following(self, op: Instruction) -> tuple[tuple[int, ...], bool]:
        """Return where ``op`` goes on in this function, and whether it may return from it."""
        conditional = _CONDITIONAL.match(op.name) is not None
        base = op.name[:-2] if conditional else op.name
        onward = (op.after,)
        if (
            (base, op.operands) == ("bx", "lr")
            or (base in ("pop", "ldmia") and re.search(r"\bpc\b", op.operands))
            or (base == "ldr" and op.operands.startswith("pc, [sp], #"))
        ):
            return onward if conditional else (), True
        if base in ("bx", "tbb", "tbh") or op.operands.startswith("pc,"):
            self._refuse(f"jumps to a computed address ({op.name} {op.operands})")
        if op.name in ("cbz", "cbnz") or (base == "b" and conditional):
            return (self._target(op), *onward), False
        if base == "b" or (base == "bl" and not self._calls(op)):
            return (self._target(op),), False
        return () if base == "udf" else onward, False

    def _calls(self, op: Instruction) -> bool:
        """``bl`` to what is no function is gcc's far jump: ARMv6-M's ``b`` reaches 2 KiB only."""
        return op.name == "blx" or (op.name == "bl" and self._target(op) in self.listing.names)

    def _target(self, op: Instruction) -> int:
        try:
            return int(op.operands.split(",")[-1].strip(), 16)
        except ValueError:
            self._refuse(f"jumps to a computed address ({op.name} {op.operands})")

    def _pushed(self, address: int, op: Instruction) -> int:
        """Bytes that the instruction adds to the stack; less than 0: takes off."""
        name, operands = op.name, op.operands
        if re.match(rf"^pop(?:{CONDITIONS})$", name):
            return 0  # a return where it is done
        if name in ("push", "pop") or "sp!" in operands:
            down = name in ("push", "vpush", "stmdb", "vstmdb") or name.startswith("stmdb")
            up = name in ("pop", "vpop", "ldmia", "vldmia") or name.startswith("ldmia")
            if down or up:
                return _listed(operands) * (1 if down else -1)
        if name in ("vpush", "vpop"):
            return _listed(operands) * (1 if name == "vpush" else -1)
        if found := re.search(r"\[sp, #-(\d+)\]!", operands):
            return int(found[1])
        if found := re.search(r"\[sp\], #(\d+)", operands):
            return -int(found[1])
        if operands.split(",")[0].strip() == "sp" and not _READ_ONLY.match(name):
            return self._moved(address, op)
        if "sp!" in operands or re.search(r"\[sp[^]]*\]!|\[sp\],", operands):
            self._refuse(f"moves the stack pointer in an unknown way ({name} {operands})")
        return 0

    def _moved(self, address: int, op: Instruction) -> int:
        sign = {"sub": 1, "subw": 1, "add": -1, "addw": -1}.get(op.name, 0)
        by = _NUMBER.search(op.operands)
        if sign and by:
            return sign * int(by[1])
        register = op.operands.split(",")[-1].strip()
        if sign and (value := self._constant(address, register)) is not None:
            return sign * value
        self._refuse(f"sets SP to what is not known ({op.name} {op.operands})")

    def _constant(self, address: int, register: str) -> int | None:
        """Return what straight code just before has put into ``register``: a literal, or, on
        ARMv6-M, a small number that is shifted or negated; None where that is not known."""
        before = sorted(a for a in self.listing.code if a < address)[-8:]
        for at in reversed(before):
            op = self.listing.code[at]
            words = [word.strip() for word in op.operands.split(",")]
            if op.name in ("bl", "blx") or re.search(rf"{{.*\b{register}\b", op.operands):
                return None
            if words[0] == register:
                return self._put(at, op, words)
        return None

    def _put(self, at: int, op: Instruction, words: list[str]) -> int | None:
        number = _NUMBER.search(op.operands)
        by = int(number[1]) if number else 0
        if op.name == "ldr" and "[pc" in op.operands and number:
            word = self.listing.words.get(((at + 4) & ~3) + by)
            return None if word is None else word - (word >> 31 << 32)
        if op.name == "movs" and number:
            return by
        if op.name in ("lsls", "negs") and (value := self._constant(at, words[1])) is not None:
            return value << by if op.name == "lsls" else -value
        return None

    def _refuse(self, what: str) -> Never:
        raise ThimbleError(f"the stack has no bound: {self.name(self.entered[-1])} {what}")


def _listed(operands: str) -> int:
    """Bytes of the registers in braces: ``{r4-r6, lr}``, ``{d8-d9}``."""
    inside = operands[operands.index("{") + 1 : operands.index("}")]
    total = 0
    for part in inside.split(","):
        first, _, last = part.strip().partition("-")
        count = int(last[1:]) - int(first[1:]) + 1 if last else 1
        total += count * (8 if first.startswith("d") else 4)
    return total
