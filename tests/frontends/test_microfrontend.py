"""The micro front end against TensorFlow's own code, as PyPI's pymicro-features has it."""

import numpy as np
import pytest

from pipeline.frontends.microfrontend import Microfrontend
from tests.frontends.test_square_wave import heard


@pytest.mark.parametrize("name", heard())
def test_equal_integers(name: str) -> None:
    original = pytest.importorskip("pymicro_features").MicroFrontend()
    sound, wanted = heard()[name], list[list[float]]()
    for at in range(0, len(sound), 160):
        found = original.process_samples(sound[at : at + 160].astype("<i2").tobytes())
        wanted += [found.features] * bool(found.features)
    levels = Microfrontend().levels(sound[None])[0]
    assert np.array_equal(levels, np.array(wanted) * 25.6) and len(levels) == 98
