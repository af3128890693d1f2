"""A table of a program's Thumb instructions: what each reads, writes and addresses.

It fails closed: an instruction that no rule here covers is of kind ``U``, and whoever executes it
proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import capstone
from capstone import arm

from pipeline.machine import lanes
from pipeline.machine.lanes import HALVES, LOWER, SAME, UPPER, UPWARD, WHOLE
from pipeline.machine.program import Program

SP, LR, PC = 13, 14, 15
NO_REGISTER = -1
NUMBERS = {f"r{n}": n for n in range(13)} | {"sb": 9, "sl": 10, "fp": 11, "ip": 12}
NUMBERS |= {"sp": SP, "lr": LR, "pc": PC}

CONDITIONS = ["eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"]
"""By their codes, of which the last bit is the opposite's."""
ALWAYS = len(CONDITIONS)
CODES = {getattr(arm, f"ARM_CC_{name.upper()}"): n for n, name in enumerate(CONDITIONS)}

ALL, LOGIC_FLAGS, GE = 1, 2, 3
READS_C, READS_GE = 1, 2

SUMS = {"add", "addw", "sub", "subw", "rsb", "adc", "sbc", "cmp", "cmn", "neg"}
LOGIC = {"mov", "movw", "mvn", "and", "orr", "eor", "bic", "orn", "tst", "teq"}
SHIFTS = {"lsl": 1, "lsr": -1, "asr": -1, "ror": -1}
COMPARES = {"cmp": ALL, "cmn": ALL, "tst": LOGIC_FLAGS, "teq": LOGIC_FLAGS}
LONG = {"smull": False, "umull": False} | dict.fromkeys(
    ("smlal", "umlal", "umaal", "smlald", "smlaldx", "smlsld", "smlsldx", "smlalbb", "smlalbt",
     "smlaltb", "smlaltt"), True,
)  # fmt: skip
"""Products of 64 bits, and whether they add to what is there."""
LIKEWISE = {
    **dict.fromkeys(("mul", "mla", "mls"), UPWARD),
    **dict.fromkeys(("sadd16", "ssub16", "qadd16", "qsub16", "ssat16", "usat16"), HALVES),
    **dict.fromkeys(("sadd8", "ssub8", "uadd8", "usub8", "qadd8", "qsub8", "uqadd8", "uqsub8",
                     "shadd8", "uhadd8", "sel"), SAME),
    "rev": lanes.lanes(lambda i, j: i + j == 3), "rbit": lanes.lanes(lambda i, j: i + j == 3),
    "rev16": lanes.lanes(lambda i, j: i ^ j == 1),
    **dict.fromkeys((
        "ssat", "usat", "smlad", "smladx", "smuad", "smuadx", "smlsd", "smlsdx", "smusd", "smusdx",
        "smlawb", "smlawt", "smulwb", "smulwt", "smmul", "smmulr", "smmla", "smmlar", "smmls",
        "smmlsr", "qadd", "qsub", "qdadd", "qdsub", "clz", "revsh", "sdiv", "udiv", "usad8",
        "usada8"), WHOLE),
}  # fmt: skip
"""Instructions that read all of their registers in the same way, by lanes."""
EXTENDS = {
    f"{sign}xt{what}": (sign == "s", size) for sign in "su" for what, size in
    (("b", 1), ("h", 2), ("b16", 0), ("ab", 1), ("ah", 2), ("ab16", 0))
}  # fmt: skip
SETS_GE = {"sadd16", "ssub16", "sadd8", "ssub8", "uadd8", "usub8"}
FIELDS = {"ubfx", "sbfx", "bfi", "bfc"}
LOADS = {"ldr": 0, "ldrb": 0, "ldrh": 0, "ldrsb": 1, "ldrsh": 1, "ldrd": 0}
"""And whether they extend the sign."""
STORES = {"str", "strb", "strh", "strd"}
SEVERAL = {"ldm", "ldmdb", "stm", "stmdb", "push", "pop"}
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
        sets, flags: which flags it sets, and reads as data.
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
    listed: tuple[int, ...] = field(default=())


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
    known = Row(i.address, i.size, f"{i.mnemonic} {i.op_str}".strip())
    plain = replace(known, condition=code)
    name = i.mnemonic.split(".")[0]
    if name.startswith("it") or name in NOTHING:
        return replace(known, kind="D")
    if code < ALWAYS and name not in ("cbz", "cbnz"):
        name = name.removesuffix(CONDITIONS[code])
    if name in FLOATS:
        return _moved(i, name, plain)
    if any(o.type == arm.ARM_OP_REG and i.reg_name(o.reg) not in NUMBERS for o in i.operands):
        return plain
    for rule in (_branch, _access, _several, _data):
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
    if name not in LOADS and name not in STORES:
        return None
    registers, many = _registers(i), 2 if name in ("ldrd", "strd") else 1
    listed, place = registers[:many], i.operands[many]
    if NO_REGISTER in listed or place.type != arm.ARM_OP_MEM:
        return None
    if any(number != NO_REGISTER for number in registers[many + 1 :]):
        return None
    base = _number(i, place.mem.base)
    index = [_number(i, place.mem.index)] if place.mem.index else []
    by = place.shift.value if place.shift.type == arm.ARM_SFT_LSL else place.mem.lshift
    return replace(
        row, kind="L" if name in LOADS else "S", extends=LOADS.get(name, 0), scale=1 << by,
        writes=1 << base if i.writeback else 0, addresses=_bits([base, *index]),
        listed=tuple(listed),
    )  # fmt: skip


def _moved(i: Any, name: str, row: Row) -> Row:
    """Floating-point registers to and from memory: compilers copy constants by them. Registers of
    single precision have the numbers from 16 on; one of double precision is two."""
    named = [i.reg_name(o.reg) for o in i.operands if o.type == arm.ARM_OP_REG]
    base = next((NUMBERS[each] for each in named if each in NUMBERS), SP)
    if name in ("vldr", "vstr"):
        base = _number(i, i.operands[1].mem.base)
    listed = list[int]()
    for kind, number in ((each[0], int(each[1:])) for each in named if each[0] in "sd"):
        listed += [16 + number] if kind == "s" else [16 + 2 * number, 17 + 2 * number]
    writes = 1 << base if name in ("vpush", "vpop") or i.writeback else 0
    kind = "L" if name in ("vldr", "vldmia", "vpop") else "S"
    return replace(row, kind=kind, addresses=1 << base, writes=writes, listed=tuple(listed))


def _several(i: Any, name: str, row: Row) -> Row | None:
    name = name.removesuffix("ia")
    if name not in SEVERAL:
        return None
    registers = _registers(i)
    stack = name in ("push", "pop")
    base, listed = (SP, registers) if stack else (registers[0], registers[1:])
    if NO_REGISTER in (base, *listed):
        return None
    return replace(
        row, kind="S" if name in ("push", "stm", "stmdb") else "L", addresses=1 << base,
        writes=1 << base if stack or i.writeback else 0, listed=tuple(sorted(listed)),
    )  # fmt: skip


def _data(i: Any, name: str, row: Row) -> Row | None:
    sets = name.endswith("s") and name not in ("mls", "smmls")  # capstone's flag says so of adc
    name = name[:-1] if sets else name
    registers = _registers(i)
    if not registers or registers[0] == NO_REGISTER:
        return None
    every = (rule(i, name, registers) for rule in RULES)
    found = next((each for each in every if each is not None), None)
    if found is None:
        return None
    written = [] if name in COMPARES else registers[: 2 if name in LONG else 1]
    merged = dict[int, int]()
    for number, matrix in found:
        if number not in (NO_REGISTER, PC):
            merged[number] = merged.get(number, 0) | matrix
    own = ALL if name in SUMS else LOGIC_FLAGS
    flags = (READS_C if name in ("adc", "sbc", "rrx") else 0) | (READS_GE if name == "sel" else 0)
    if PC in written:
        if len(merged) > 1:
            return None
        return replace(row, kind="B", sources=tuple((number, WHOLE) for number in merged))
    return replace(
        row, kind="D", writes=_bits(written), sources=tuple(sorted(merged.items())), flags=flags,
        sets=COMPARES.get(name, GE if name in SETS_GE else own if sets else 0),
        variable=int(name in ("sdiv", "udiv")),
    )  # fmt: skip


Found = list[tuple[int, int]] | None
Registers = list[int]


def _operand(o: Any, number: int, after: int, i: Any) -> list[tuple[int, int]]:
    """Find the sources of a flexible second operand, of which ``after`` is made."""
    if o.shift.type in BY_REGISTER:
        return [(number, WHOLE), (_number(i, o.shift.value), WHOLE)]
    if o.shift.type == arm.ARM_SFT_INVALID:
        return [(number, after)]
    if o.shift.type not in SHIFTED:
        return [(number, WHOLE)]
    return [(number, lanes.then(_by(SHIFTED[o.shift.type], o.shift.value), after))]


def _by(name: str, count: int) -> int:
    return lanes.shifted(SHIFTS[name] * count, fill=name == "asr", turn=name == "ror")


def _sum_or_logic(i: Any, name: str, registers: Registers) -> Found:
    if name not in SUMS | LOGIC:
        return None
    ops, matrix = list(i.operands), UPWARD if name in SUMS else SAME
    single = name in ("mov", "movw", "mvn", "neg")
    read = ops[1:] if single or len(ops) == 3 else ops  # add r0, r1 is add r0, r0, r1
    numbers = registers[len(ops) - len(read) :]
    last, found = read[-1], list[tuple[int, int]]()
    mask = last.imm & 0xFFFFFFFF if last.type == arm.ARM_OP_IMM else None
    for o, number in zip(read, numbers, strict=True):
        found += _operand(o, number, matrix, i)
    if mask is not None and name in ("and", "tst", "bic"):
        kept = lanes.masked(mask if name != "bic" else ~mask)
        found = [(number, kept) for number, _ in found]
    return found


def _shift(i: Any, name: str, registers: Registers) -> Found:
    if name not in SHIFTS:
        return None
    last, value = i.operands[-1], registers[-2]
    if last.type == arm.ARM_OP_IMM:
        return [(value, _by(name, last.imm))]
    return [(number, WHOLE) for number in registers[-2:]]


def _likewise(i: Any, name: str, registers: Registers) -> Found:
    if name not in LIKEWISE:
        return None
    ops = zip(i.operands, registers, strict=True)
    read = list(ops)[1:] if len(registers) > 2 or name in UNARY else list(ops)
    return [each for o, number in read for each in _operand(o, number, LIKEWISE[name], i)]


UNARY = {"clz", "rev", "rev16", "revsh", "rbit"}


def _halves(i: Any, name: str, registers: Registers) -> Found:
    """smulbt and smlabt: one half of each factor."""
    if not (name[:4] in ("smul", "smla") and len(name) == 6 and {*name[4:]} <= {*"bt"}):
        return None
    first, second, *rest = registers[1:]
    factors = zip((first, second), name[4:], strict=True)
    found = [(number, LOWER if half == "b" else UPPER) for number, half in factors]
    return [*found, *((number, UPWARD) for number in rest)]


def _extend(i: Any, name: str, registers: Registers) -> Found:
    if name not in EXTENDS:
        return None
    signed, size = EXTENDS[name]
    last = i.operands[-1]
    turned = _by("ror", last.shift.value) if last.shift.type == arm.ARM_SFT_ROR else SAME
    value, *added = reversed(registers[1:])
    if size:
        made = lanes.lanes(lambda i, j: i == j < size or (signed and i >= size and j == size - 1))
    else:
        made = lanes.lanes(lambda i, j: j == i - i % 2 and (signed or i == j))
    sums = UPWARD if size else HALVES
    taken = lanes.then(turned, lanes.then(made, sums) if added else made)
    return [(value, taken), *((number, sums) for number in added)]


def _pack(i: Any, name: str, registers: Registers) -> Found:
    if name not in ("pkhbt", "pkhtb"):
        return None
    own: Callable[[int], bool] = (lambda n: n < 2) if name == "pkhbt" else (lambda n: n >= 2)
    first, second = registers[-2], registers[-1]
    other = lanes.rows(SAME, lambda n: not own(n))
    return [(first, lanes.rows(SAME, own)), *_operand(i.operands[-1], second, other, i)]


def _field(i: Any, name: str, registers: Registers) -> Found:
    """ubfx, sbfx; bfi and bfc replace a field; movt the upper half."""
    first, second = registers[0], registers[1]
    if name == "movt":
        return [(first, lanes.rows(SAME, lambda n: n < 2))]
    if name not in FIELDS:
        return None
    low, width = (o.imm for o in i.operands[-2:])
    if name in ("ubfx", "sbfx"):
        return [(second, lanes.field(low, width, signed=name == "sbfx"))]
    kept = lanes.masked(~(((1 << width) - 1) << low))
    if name == "bfc" or second == NO_REGISTER:
        return [(first, kept)]
    placed = lanes.then(lanes.field(0, width, signed=False), lanes.shifted(low))
    return [(first, kept), (second, placed)]


def _long(i: Any, name: str, registers: Registers) -> Found:
    if name not in LONG:
        return None
    read = registers if LONG[name] else registers[2:]
    return [(number, WHOLE) for number in read]


def _address(i: Any, name: str, registers: Registers) -> Found:
    return [] if name == "adr" else None


RULES = (_sum_or_logic, _shift, _likewise, _halves, _extend, _pack, _field, _long, _address)
