"""The paper's peak memory formulas, corrected, for layout ``contiguous`` in the restricted case.

A *debt* is what a layer needs beyond its input, in the unit of ``fin`` and ``fout`` (channels in
the paper, nibbles of a pixel elsewhere here). h, w are the output's height and width, k the
kernel's side. Strategies do not use these: they count what is live. The tests compare the two.

Source: Gural and Murmann, Memory-Optimal Direct Convolutions, ICML 2019, sections 3.3 and 3.4.
"""


def peel_debt(x: int, k: int, fin: int, fout: int) -> int:
    """D(x) = x (fout - fin) - (k - 1) fin: what a finished row or column of x pixels leaves."""
    return x * (fout - fin) - (k - 1) * fin


def peels_that_cost(k: int, fin: int, fout: int) -> int:
    """r* = floor((k - 1) fin / (fout - fin)): a peel of up to r* pixels pays back what it costs."""
    return (k - 1) * fin // (fout - fin)


def remainder(k: int, fin: int, fout: int) -> int:
    """alpha = (k - 1) fin mod (fout - fin), of eq. 3."""
    return (k - 1) * fin % (fout - fin)


def same_depth_debt(fout: int) -> int:
    """Section 3.3: a pixel's outputs, even where fout <= fin, since they are written while the
    inputs that die with them are still counted. (The authors' program charges nothing here.)"""
    return fout


def replace_debt(h: int, w: int, k: int, fin: int, fout: int) -> int:
    """Eq. 1: h D(w) + k fin.

    Error in the paper: it fails where D(w) < 0, that is where floor(x*) >= w. Debts then shrink
    from row to row and the peak is in the first one: D(w) + k fin.
    """
    if fout <= fin:
        return same_depth_debt(fout)
    row = peel_debt(w, k, fin, fout)
    return max(row, h * row) + k * fin


def herringbone_debt(h: int, w: int, k: int, fin: int, fout: int) -> int:
    """Eq. 2, with r (r + 1) outputs left at the peak, r = floor(x*), instead of r squared.

    Errors in the paper: as printed eq. 2 is low by exactly alpha, because the last peel that costs
    anything, of r + 1 pixels, leaves r x (r + 1) outputs (the prefix sum above eq. 2 is right);
    and where r >= min(h, w) nothing but the first peel counts: D(min(h, w)) + k fin.
    """
    if fout <= fin:
        return same_depth_debt(fout)
    r = peels_that_cost(k, fin, fout)
    if r >= min(h, w):
        return peel_debt(min(h, w), k, fin, fout) + k * fin
    stale = (h + k - 1) * (w + k - 1) - (r + k - 1) * (r + k)
    return (h * w - r * (r + 1)) * fout - (stale - k) * fin


def printed_herringbone_debt(h: int, w: int, k: int, fin: int, fout: int) -> int:
    """Eq. 2 as printed: too low by alpha. Eq. 3 builds on it and is right nevertheless."""
    r = peels_that_cost(k, fin, fout)
    stale = (h + k - 1) * (w + k - 1) - (r + k - 1) ** 2
    return (h * w - r * r) * fout - (stale - k) * fin


def single_transpose_debt(h: int, w: int, k: int, fin: int, fout: int) -> int:
    """Eq. 3: the printed eq. 2 + min(w alpha, (k - 1) fin) - r alpha, w being the shorter side.

    Errors in the paper: D_hb in it must be eq. 2 as printed, not the true optimum; and it fails
    where r >= min(h, w), as eq. 2 does.
    """
    if fout <= fin:
        return same_depth_debt(fout)
    r, alpha = peels_that_cost(k, fin, fout), remainder(k, fin, fout)
    if r >= min(h, w):
        return peel_debt(min(h, w), k, fin, fout) + k * fin
    extra = min(min(h, w) * alpha, (k - 1) * fin) - r * alpha
    return printed_herringbone_debt(h, w, k, fin, fout) + extra


# --- appendix C: kernels and strides by rows and columns, no padding


def row_debt(x: int, kernel: tuple[int, int], stride: tuple[int, int], fin: int, fout: int) -> int:
    """Return what a finished row of ``x`` outputs leaves: x (fout - rs cs fin) - rs (kw - cs) fin,
    where kw >= cs; of a column with rows and columns exchanged.

    Errors in the paper: eqs. 21 and 22 have + rs kw fin, as if the input that the window still
    reaches over were debt, and none of it were made stale by the stride. With strides of 1 this is
    D(x) of C.1, which is right.
    """
    (_, width), (down, right) = kernel, stride
    return x * (fout - down * right * fin) - down * (width - right) * fin


def printed_row_debt(
    x: int, kernel: tuple[int, int], stride: tuple[int, int], fin: int, fout: int
) -> int:
    """Eq. 21 as printed."""
    (_, width), (down, right) = kernel, stride
    return x * (fout - down * right * fin) + down * width * fin


def rows_first(
    kernel: tuple[int, int], stride: tuple[int, int], fin: int, fout: int, printed: bool = False
) -> float:
    """x0 of eqs. 16 and 23: how much longer columns have to be than rows for both to leave the same
    debt. Where an image has as many rows as columns so many *columns* are cheaper first.

    Errors in the paper: it starts with so many rows; and in eq. 23 x0 has its sign from eqs. 21 and
    22. ``printed``: eq. 23's.
    """
    (height, width), (down, right) = kernel, stride
    growth = fout - down * right * fin
    if printed and stride != (1, 1):
        return (down * width - right * height) * fin / growth
    return (right * (height - down) - down * (width - right)) * fin / growth
