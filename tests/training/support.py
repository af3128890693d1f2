"""Trainings that are compared, and one that ends early."""

import numpy as np

from pipeline.artifacts import Arrays
from pipeline.training.paper_progress import Steps


def equal(a: Arrays, b: Arrays) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


class Fragile(Steps):
    """Ends its training as a kill does, once the third step has been kept."""

    def done(self, phase: str, step: int, of: int, text: str) -> None:
        if step == 3:
            raise KeyboardInterrupt
