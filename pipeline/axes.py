"""Check whether images have the axes that a network takes: equal numbers of values don't do."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Axes = Sequence[int]


def fits(images: Axes, takes: Axes) -> bool:
    """Check whether an image of shape ``images`` may be stored as ``takes``, its values in order.

    Axes of extent 1 do not matter: a signal of length l is 1 x l x 1 as well as l. A flat input
    takes an image of one channel row by row; with more it could mean pixel by pixel or channel by
    channel.
    """
    given, wanted = _long(images), _long(takes)
    flat = len(wanted) <= 1 and images[-1] == 1 and prod(given) == prod(wanted)
    return given == wanted or flat


def advice(images: Axes, takes: Axes) -> str:
    """Say how to mend axes that lie in another order; an empty string where they don't."""
    given, wanted = _long(images), _long(takes)
    if len(given) == 3 and (*given[1:], given[0]) == wanted:
        return "their channels come first: save np.moveaxis(images, 1, -1)"
    if (*given[1::-1], *given[2:]) == wanted:
        return "two of their axes are exchanged: save them swapped, with np.swapaxes"
    if len(wanted) <= 1 and prod(given) == prod(wanted):
        return "save them flat, images.reshape(len(images), -1), in the order it was trained with"
    if len(given) <= 1 and prod(given) == prod(wanted):
        return f"save them with their axes, images.reshape(-1, {', '.join(map(str, takes))})"
    return ""


def times(shape: Axes) -> str:
    return "x".join(map(str, shape))


def _long(shape: Axes) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)
