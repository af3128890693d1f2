"""Any movement of elements, as the rearrangements that importers make of it."""

import numpy as np

from pipeline.importers.moves import moved


def test_axes_that_turn_and_repeat_are_moves_one_after_the_other() -> None:
    """Of four axes in any order, two of which repeat each of their elements."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        shape = rng.integers(2, 5, 4)
        wanted = np.arange(shape.prod()).reshape(shape).transpose(rng.permutation(4))
        for axis in rng.choice(4, 2, replace=False):
            wanted = np.repeat(wanted, 2, axis)
        found, moves = np.arange(shape.prod()), moved(wanted, int(shape.prod()))
        for move in moves or ():
            found = found[move.places.reshape(-1)]
        assert np.array_equal(found, wanted.reshape(-1)), seed
