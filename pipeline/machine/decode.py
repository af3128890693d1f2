"""A table of a program's Thumb instructions: what each reads, writes and addresses.

It fails closed: an instruction that no rule here covers is of kind ``U``, and whoever executes it
proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import capstone
from capstone import arm

from pipeline.machine import lanes
from pipeline.machine.lanes import HALVES, LOWER, NONE, SAME, UPPER, UPWARD, WHOLE
from pipeline.machine.program import Program

SP, LR, PC = 13, 14, 15
MOST_LISTED = 16
"""Registers that an instruction may load or store: the plugin has room for so many."""
NO_REGISTER = -1
NUMBERS = {f"r{n}": n for n in range(13)} | {"sb": 9, "sl": 10, "fp": 11, "ip": 12}
NUMBERS |= {"sp": SP, "lr": LR, "pc": PC}
HELD = {
    **{name: (number,) for name, number in NUMBERS.items()},
    **{f"s{n}": (16 + n,) for n in range(32)},
    **{f"d{n}": (16 + 2 * n, 17 + 2 * n) for n in range(16)},
}
"""Numbers of all registers; one of double precision is two of single precision."""

CONDITIONS = ["eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"]
"""By their codes, of which the last bit is the opposite's."""
ALWAYS = len(CONDITIONS)
CODES = {getattr(arm, f"ARM_CC_{name.upper()}"): n for n, name in enumerate(CONDITIONS)}

LOGIC_FLAGS, READS_C, ALL, GE = 1, 2, 7, 8
"""Sets of flags, by bits: N with Z, C, V, GE. Logic may set C, too, by its shift."""

LOWER_BYTES = lanes.rows(SAME, lambda n: n < 2)
HALF = {"b": LOWER, "t": UPPER}
MIRRORED = lanes.lanes(lambda i, j: i + j == 3)
SUMS = ("add", "addw", "sub", "subw", "rsb", "adc", "sbc", "cmp", "cmn", "neg")
SHIFTS = {"lsl": 1, "lsr": -1, "asr": -1, "ror": -1}
COMPARES = {"cmp": ALL, "cmn": ALL, "tst": LOGIC_FLAGS, "teq": LOGIC_FLAGS}
LONG = {"smull": 2, "umull": 2} | dict.fromkeys(
    ("smlal", "umlal", "umaal", "smlald", "smlaldx", "smlsld", "smlsldx", "smlalbb", "smlalbt",
     "smlaltb", "smlaltt"), 0,
)  # fmt: skip
"""Products of 64 bits, and their first operand that is read: some add to what is there."""


def _extends(signed: bool, size: int, added: bool) -> tuple[int, ...]:
    """Lanes of what is extended from ``size`` bytes, 0: from two bytes to two halves."""
    if size:
        made = lanes.lanes(lambda i, j: i == j < size or (signed and i >= size and j == size - 1))
    else:
        made = lanes.lanes(lambda i, j: j == i - i % 2 and (signed or i == j))
    sums = UPWARD if size else HALVES
    return (sums, lanes.then(made, sums)) if added else (made,)


DATA: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((*SUMS, "mul", "mla", "mls"), (UPWARD,)),
    **dict.fromkeys(("sadd16", "ssub16", "qadd16", "qsub16", "ssat16", "usat16"), (HALVES,)),
    **dict.fromkeys(("mov", "movw", "mvn", "and", "orr", "eor", "bic", "orn", "tst", "teq", "sadd8",
                     "ssub8", "uadd8", "usub8", "qadd8", "qsub8", "uqadd8", "uqsub8", "shadd8",
                     "uhadd8", "sel"), (SAME,)),
    "rev": (MIRRORED,), "rbit": (MIRRORED,), "rev16": (lanes.lanes(lambda i, j: i ^ j == 1),),
    **dict.fromkeys((
        *LONG, *SHIFTS, "ssat", "usat", "smlad", "smladx", "smuad", "smuadx", "smlsd", "smlsdx",
        "smusd", "smusdx", "smlawb", "smlawt", "smulwb", "smulwt", "smmul", "smmulr", "smmla",
        "smmlar", "smmls", "smmlsr", "qadd", "qsub", "qdadd", "qdsub", "clz", "revsh", "sdiv",
        "udiv", "usad8", "usada8"), (WHOLE,)),
    **{f"{what}{one}{other}": (HALF[one], HALF[other], UPWARD)
       for what in ("smul", "smla") for one in "bt" for other in "bt"},
    **{f"{sign}xt{added}{what}": _extends(sign == "s", size, bool(added)) for sign in "su"
       for added in ("", "a") for what, size in (("b", 1), ("h", 2), ("b16", 0))},
    "pkhbt": (LOWER_BYTES, SAME & ~LOWER_BYTES), "pkhtb": (SAME & ~LOWER_BYTES, LOWER_BYTES),
    "movt": (LOWER_BYTES,), "adr": (NONE,),
}  # fmt: skip
"""Lanes of the operands that an instruction reads, in order; of further ones the last again."""
UNARY = {"mov", "movw", "mvn", "neg", "clz", "rev", "rev16", "revsh", "rbit", "adr",
         *(name for name in DATA if name[1:3] == "xt")}  # fmt: skip
"""Those whose first operand is only written, though they have two."""
SETS_GE = {"sadd16", "ssub16", "sadd8", "ssub8", "uadd8", "usub8"}
ACCESSES = {
    **dict.fromkeys(("ldr", "ldrb", "ldrh", "ldrsb", "ldrsh", "ldrd", "ldm", "ldmdb", "pop", "vldr",
                     "vldm", "vpop"), "L"),
    **dict.fromkeys(("str", "strb", "strh", "strd", "stm", "stmdb", "push", "vstr", "vstm",
                     "vpush"), "S"),
}  # fmt: skip
FLOATS = {"vldr", "vstr", "vldmia", "vstmia", "vpush", "vpop"}
NOTHING = {"nop", "hint", "dsb", "isb", "dmb", "pld"}
BY_REGISTER = {arm.ARM_SFT_ASR_REG, arm.ARM_SFT_LSL_REG, arm.ARM_SFT_LSR_REG, arm.ARM_SFT_ROR_REG}
SHIFTED = {arm.ARM_SFT_LSL: "lsl", arm.ARM_SFT_LSR: "lsr", arm.ARM_SFT_ASR: "asr",
           arm.ARM_SFT_ROR: "ror"}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One instruction; ``firmware/simulators/declared_steps.h`` has the same fields.

    Attributes:
        kind: D data, B branch, L load, S store, U unknown.
        condition: the code of a predicate or branch.
        sets, flags: sets of flags that it sets, and reads as data.
        variable: its time depends on what it reads.
        extends: a load extends the sign.
        writes, addresses: sets of registers, by bits.
        scale: what an index register is multiplied by in an address.
        target: where a branch goes; 0: by a register.
        sources: registers that are read as data, each with its lanes.
        listed: registers that are loaded or stored, in order.
    """

    at: int
    size: int
    text: str
    kind: str = "U"
    condition: int = ALWAYS
    sets: int = 0
    flags: int = 0
    variable: int = 0
    extends: int = 0
    writes: int = 0
    addresses: int = 0
    scale: int = 1
    target: int = 0
    sources: tuple[tuple[int, int], ...] = ()
    listed: tuple[int, ...] = ()


def table(program: Program) -> dict[int, Row]:
    """Decode all instructions of ``program`` by address."""
    decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
    decoder.detail = True
    found = dict[int, Row]()
    for start, content in program.code():
        at = start
        while at < start + len(content):
            for each in decoder.disasm(content[at - start :], at):
                found[each.address] = row(each)
                at = each.address + each.size
            if at < start + len(content):  # 16 bits that nobody knows
                found[at] = Row(at, 2, "?")
                at += 2
    return found


def row(i: Any) -> Row:
    """Describe an instruction of capstone's."""
    code = CODES.get(i.cc, ALWAYS)
    bare = Row(i.address, i.size, f"{i.mnemonic} {i.op_str}".strip())
    plain = replace(bare, condition=code)
    name = i.mnemonic.split(".")[0]
    if name.startswith("it") or name in NOTHING:
        return replace(bare, kind="D")
    if code < ALWAYS and name not in ("cbz", "cbnz"):
        name = name.removesuffix(CONDITIONS[code])
    named = (i.reg_name(o.reg) for o in i.operands if o.type == arm.ARM_OP_REG)
    known = HELD if name in FLOATS else NUMBERS
    if any(each not in known for each in named):
        return plain
    for rule in (_branch, _access, _data):
        if found := rule(i, name, plain):
            return found
    return plain


def _number(i: Any, register: int) -> int:
    return NUMBERS[i.reg_name(register)]


def _registers(i: Any) -> list[int]:
    """Registers by operand; ``NO_REGISTER`` for those that are something else."""
    return [_number(i, o.reg) if o.type == arm.ARM_OP_REG else NO_REGISTER for o in i.operands]


def _bits(registers: Iterable[int]) -> int:
    return sum(1 << number for number in {*registers} - {NO_REGISTER})


def _branch(i: Any, name: str, row: Row) -> Row | None:
    link = 1 << LR if name in ("bl", "blx") else 0
    if name in ("b", "bl"):
        return replace(row, kind="B", writes=link, target=i.operands[0].imm)
    if name in ("bx", "blx", "cbz", "cbnz"):
        first = _registers(i)[0]
        sources = ((first, WHOLE),) if first != NO_REGISTER else ()
        target = i.operands[1].imm if name in ("cbz", "cbnz") else 0
        return replace(row, kind="B", writes=link, sources=sources, target=target)
    if name in ("tbb", "tbh"):
        memory = i.operands[0].mem
        both = [_number(i, memory.base), _number(i, memory.index)]
        return replace(row, kind="L", addresses=_bits(both), listed=(PC,))
    return None


def _access(i: Any, name: str, row: Row) -> Row | None:
    """Registers to and from memory; floating-point ones, too: compilers copy constants by them."""
    name = name.removesuffix("ia")
    if name not in ACCESSES:
        return None
    registers = [HELD[i.reg_name(o.reg)] for o in i.operands if o.type == arm.ARM_OP_REG]
    memory = [o for o in i.operands if o.type == arm.ARM_OP_MEM]
    stack, index, by = name.endswith(("push", "pop")), list[int](), 0
    if memory:
        (place,) = memory
        if len(registers) != (2 if name in ("ldrd", "strd") else 1):
            return row
        base = _number(i, place.mem.base)
        index = [_number(i, place.mem.index)] if place.mem.index else []
        by = place.shift.value if place.shift.type == arm.ARM_SFT_LSL else place.mem.lshift
    else:
        base = SP if stack else registers.pop(0)[0]
        registers.sort()
    listed = tuple(chain.from_iterable(registers))
    if len(listed) > MOST_LISTED:
        return row
    return replace(
        row, kind=ACCESSES[name], extends=int(name in ("ldrsb", "ldrsh")), scale=1 << by,
        writes=1 << base if stack or i.writeback else 0, addresses=_bits([base, *index]),
        listed=listed,
    )  # fmt: skip


def _data(i: Any, name: str, row: Row) -> Row | None:
    sets = name.endswith("s") and name not in ("mls", "smmls")  # capstone's flag says so of adc
    name = name[:-1] if sets else name
    registers = _registers(i)
    if not registers or registers[0] == NO_REGISTER:
        return None
    if not (read := _read(i, name)):
        return None
    written = [] if name in COMPARES else registers[: 2 if name in LONG else 1]
    merged = dict[int, int]()
    for number, matrix in _sources(i, registers, *read):
        if number not in (NO_REGISTER, PC):
            merged[number] = merged.get(number, 0) | matrix
    own = ALL if name in SUMS else LOGIC_FLAGS
    flags = (READS_C if name in ("adc", "sbc") else 0) | (GE if name == "sel" else 0)
    if PC in written:
        if len(merged) > 1:
            return None
        return replace(row, kind="B", sources=tuple((number, WHOLE) for number in merged))
    return replace(
        row, kind="D", writes=_bits(written), sources=tuple(sorted(merged.items())), flags=flags,
        sets=COMPARES.get(name, GE if name in SETS_GE else own if sets else 0),
        variable=int(name in ("sdiv", "udiv")),
    )  # fmt: skip


def _read(i: Any, name: str) -> tuple[int, tuple[int, ...]] | None:
    """Find the first operand that is read, and lanes as in ``DATA``; those that constants decide
    with them."""
    count = len(i.operands)
    first = LONG.get(name, int((count > 2 or name in UNARY) and name != "movt"))
    constants = [o.imm for o in i.operands if o.type == arm.ARM_OP_IMM]
    match name, constants:
        case (("lsl" | "lsr" | "asr" | "ror"), [by]):
            return count - 2, (_by(name, by),)
        case (("and" | "tst" | "bic"), [mask]):
            return first, (lanes.masked(~mask if name == "bic" else mask),)
        case (("ubfx" | "sbfx"), [low, width]):
            return 1, (lanes.field(low, width, signed=name == "sbfx"),)
        case (("bfi" | "bfc"), [low, width]):
            placed = lanes.then(lanes.field(0, width, signed=False), lanes.shifted(low))
            return 0, (lanes.masked(~(((1 << width) - 1) << low)), placed)
    return (first, DATA[name]) if name in DATA else None


def _sources(
    i: Any, registers: list[int], first: int, read: tuple[int, ...]
) -> Iterator[tuple[int, int]]:
    """Yield each register that is read and its lanes, those of its shift included."""
    for n, (o, number) in enumerate(zip(i.operands[first:], registers[first:], strict=True)):
        after = read[min(n, len(read) - 1)]
        if o.shift.type in SHIFTED:
            yield number, lanes.then(_by(SHIFTED[o.shift.type], o.shift.value), after)
        else:
            yield number, after if o.shift.type == arm.ARM_SFT_INVALID else WHOLE
        if o.shift.type in BY_REGISTER:
            yield _number(i, o.shift.value), WHOLE


def _by(name: str, count: int) -> int:
    return lanes.shifted(SHIFTS[name] * count, fill=name == "asr", turn=name == "ror")
