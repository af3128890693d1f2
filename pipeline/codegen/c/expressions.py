"""C expressions as a person writes them."""


def product(text: str, factor: int | str) -> str:
    """``text * factor`` as a person writes it."""
    if factor == 0 or text == "0":
        return "0"
    if text.isdecimal() and isinstance(factor, int):
        return str(int(text) * factor)
    inside = f"({text})" if " + " in text or " - " in text else text
    return text if factor == 1 else f"{inside} * {factor}"


def times(*factors: str) -> str:
    """Return a product of expressions."""
    return " * ".join(f"({text})" if " " in text else text for text in factors)


def offset(index: str, start: str, ring: int, stride: int | str) -> str:
    """Bytes from a view's corner to ``index`` along one axis."""
    if ring:
        return product(f"nn_ring({index}, {ring})", stride)
    return product(minus(index, start), stride)


def minus(text: str, other: str) -> str:
    if other == "0":
        return text
    inside = f"({other})" if " " in other else other
    return f"{text} + {other[1:]}" if other.startswith("-") else f"{text} - {inside}"


def total(*parts: object) -> str:
    """Return a sum without its zeros."""
    return " + ".join(text for text in map(str, parts) if text != "0") or "0"


def both(number: int) -> str:
    """Return a word that has ``number`` in either half."""
    return f"0x{(number & 0xFFFF) * 0x10001:08X}u"


def centred(text: str, zero_point: int) -> str:
    """``text`` less the zero point, as a factor."""
    return f"({minus(text, str(zero_point))})" if zero_point else text
