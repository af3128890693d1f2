"""MFCC in integers against the definition of MLPerf Tiny's reference, in floats."""

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.frontends.mfcc import Mfcc
from pipeline.frontends.realtime import realtime

EAR = Mfcc()


def reference(sound: np.ndarray, largest: float) -> np.ndarray:
    """(49, 10): what get_dataset.py of mlcommons/tiny computes with tf.signal, of one second."""
    windows = (sound / largest)[np.arange(49)[:, None] * 320 + np.arange(640)]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(640) / 640)
    spectrum = np.abs(np.fft.rfft(windows * hann, 1024))

    def mel(hertz: np.ndarray | float) -> np.ndarray:
        return 1127 * np.log(1 + np.asarray(hertz) / 700)

    edges = np.linspace(mel(20), mel(4000), 42)
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    bins = mel(np.linspace(0, 8000, 513)[1:])[:, None]
    slopes = np.minimum((bins - lower) / (centre - lower), (upper - bins) / (upper - centre))
    weights = np.vstack([np.zeros((1, 40)), np.maximum(0, slopes)])
    logs = np.log(spectrum @ weights + 1e-6)
    angle = np.pi / 80 * np.arange(10)[:, None] * (2 * np.arange(40) + 1)
    return logs @ (2 * np.cos(angle) / np.sqrt(80)).T


def heard() -> dict[str, np.ndarray]:
    random, time = np.random.default_rng(0), np.arange(16_000) / 16_000
    made = {
        "noise": random.normal(0, 2_000, 16_000),
        "hiss": random.normal(0, 20, 16_000),
        "tone": 8_000 * np.sin(2 * np.pi * 440 * time) + random.normal(0, 30, 16_000),
        "chirp": 12_000 * np.sin(2 * np.pi * (200 * time + 1_500 * time**2))
        + random.normal(0, 30, 16_000),
        "loudest": random.choice([-32_768, 32_767], 16_000),
        "silence": np.zeros(16_000),
    }
    return {name: np.rint(sound).astype(np.int16) for name, sound in made.items()}


@pytest.mark.parametrize("name", heard())
def test_within_a_fortieth_of_a_step_of_the_reference(name: str) -> None:
    """A step is 0.585: rounded to it at most one value in a hundred is another, by one."""
    sound = heard()[name]
    wanted = reference(sound.astype(float), EAR.level)
    windows = sound.astype(np.int64)[np.arange(49)[:, None] * 320 + np.arange(640)]
    found = EAR.coefficients_of(windows) / (1 << 16)
    assert np.abs(found - wanted).max() < 0.585 / 40
    steps = np.clip(np.rint(wanted / EAR.scale) + EAR.zero_point, -128, 127)
    apart = np.abs(EAR.features(sound[None])[0, :, :, 0].astype(int) - 128 - steps)
    assert apart.max() <= 1 and (apart > 0).mean() <= 0.01


def test_it_is_for_the_network_of_mlperf_tiny() -> None:
    assert EAR.shape == (49, 10, 1) and EAR.samples == 16_000 and EAR.state_bytes == 5_544


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"coefficients": 41}, "coefficients=41"),
        ({"frames": 0}, "of one frame at least"),
        ({"level": 0}, "frontend.level=0: 1 to 32768"),
        ({"scale": 0.0}, "what the network says of its input"),
        ({"zero_point": 128}, "-128 to 127"),
    ],
)
def test_what_is_impossible(keys: dict[str, float], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        Mfcc(**keys)


def test_the_share_of_a_sound_that_the_cpu_computes() -> None:
    sounds = np.zeros((3, 8_000), np.int16)
    found = realtime({"compute_us": 125_000.0}, sounds)
    assert found == {"sound_us": 500_000.0, "realtime_factor": 0.25}
    assert realtime({"compute_us": 1.0}, None) == {}
    assert realtime({}, np.zeros((1, 16_000), np.int16)) == {"sound_us": 1_000_000.0}
