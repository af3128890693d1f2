"""The spectrogram by square waves against its equations, sample by sample."""

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.frontends.none import NoFrontend
from pipeline.frontends.square_wave import SquareWave, log2_steps

SMALL = SquareWave(bins=6, frames=9, chunk=64, history=3, low_hz=150.0, high_hz=3_000.0)
NOISE = np.random.default_rng(1).integers(-32_768, 32_768, (3, 9 * 64 + 32)).astype(np.int16)


def tone(hertz: float, loud: float, count: int, at: float = 0.0) -> np.ndarray:
    turns = np.arange(count) * hertz / 16_000 + at
    return np.rint(loud * np.sin(2 * np.pi * turns)).astype(np.int16)[None]


def test_it_is_eqs_25_to_27_sample_by_sample() -> None:
    for sound, found in zip(NOISE, SMALL.features(NOISE), strict=True):
        sums = np.zeros((2, 9, 6), int)
        for k in range(9 * 64):
            value = max(-128, min(127, int(sound[k]) >> 7))
            for m, step in enumerate(SMALL.steps):
                for which, quarter in ((0, 16_384), (1, 0)):
                    high = (k * step - quarter) % 65_536 < 32_768
                    sums[which, k // 64, m] += value if high else -value
        for j in range(9):
            for m in range(6):
                parts = [
                    sum(w * int(each[j - ago, m]) for ago, w in enumerate(SMALL.window) if j >= ago)
                    for each in sums
                ]
                power = sum((part >> 5) ** 2 for part in parts)
                level = 0
                if power:
                    octave = power.bit_length() - 1
                    level = 16 * octave + ((power * 16) >> octave) - 16
                assert found[j, m, 0] == max(0, min(255, level - SMALL.floor))


def test_bits_do_not_run_over() -> None:
    """The loudest square wave that there is, in phase: its sum still fits 16 bits, P 31."""
    steady = SquareWave(frames=8, chunk=224, low_hz=50, high_hz=5_000)
    wave = np.full((1, steady.samples), -32_768, np.int16)
    for sums in steady.sums(wave):
        assert np.abs(sums).max() <= 128 * 224 < 1 << 15
    assert steady.power(wave).max() < 1 << 31
    assert log2_steps(np.array([0, 1, (1 << 30) - 1, 1 << 30])).tolist() == [0, 0, 479, 480]


HARMONICS = range(1, 8)


def test_leakage_is_that_of_eq_31() -> None:
    """A tone of the l-th harmonic of a bin's frequency shows there with 1/l of its amplitude where
    l is odd, and not at all where it isn't: within 1 dB."""
    ear = SquareWave()
    for m in (3, 9, 13):
        found = {}
        for harmonic in HARMONICS:
            if (hertz := harmonic * ear.frequencies_hz[m]) < 7_900:
                powers = ear.power(tone(hertz, 12_000, ear.samples))
                found[harmonic] = 10 * np.log10(powers[0, 20:, m].mean() + 1)
        for harmonic, level in found.items():
            leaked, wanted = level - found[1], -20 * np.log10(harmonic)
            if harmonic % 2:
                assert leaked == pytest.approx(wanted, abs=1), (m, harmonic)
            else:
                assert leaked < -20, (m, harmonic)


@pytest.mark.parametrize("together", [0.0, 0.5])
def test_cross_terms_are_those_of_eq_31(together: float) -> None:
    """Expect P_m + 2/3 P_m,3m + 1/9 P_3m of a tone and its third harmonic in its bin: in phase
    amplitudes add up, in opposite phase they take from each other, within 1 dB."""
    ear = SquareWave()
    hertz = ear.frequencies_hz[8]
    first, third = (
        tone(hertz * times, 6_000, ear.samples, at) for times, at in ((1, 0.0), (3, together))
    )
    alone, both = (ear.power(sound)[0, 20:, 8].mean() for sound in (first, first + third))
    sign = 1 if together == 0 else -1
    assert 10 * np.log10(both / alone) == pytest.approx(20 * np.log10(1 + sign / 3), abs=1)


def test_shape_and_state() -> None:
    ear = SquareWave()
    assert ear.shape == (96, 24, 1) and ear.state_bytes == 480 + 48 + 64 + 8
    assert ear.samples == 96 * 160 + 32 <= 16_000


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"bins": 33}, "frontend.bins=33: 1 to 32"),
        ({"chunk": 100}, "multiples of 32 up to 255"),
        ({"chunk": 256}, "multiples of 32 up to 255"),
        ({"low_hz": 0.0}, "above 0, in this order"),
        ({"high_hz": 8_000.0}, "below half of the 16,000 samples"),
        ({"history": 9}, "1 to 8 chunks"),
        ({"frames": 0}, "one frame at least"),
        ({"sample_shift": 9}, "0 to 8 bits"),
    ],
)
def test_what_is_impossible(keys: dict[str, float], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        SquareWave(**keys)


def data(sounds: np.ndarray) -> dict[str, np.ndarray]:
    labels = np.zeros(len(sounds), np.uint8)
    return {f"{part}_{kind}": value for part in ("train", "validation", "test")
            for kind, value in (("images", sounds), ("labels", labels))}  # fmt: skip


def test_a_data_set_gets_features_and_keeps_the_test_sounds() -> None:
    """Sounds need a front end, and images none."""
    made = SMALL.applied(data(NOISE))
    assert made["train_images"].shape == (3, 9, 6, 1) and made["train_images"].dtype == np.uint8
    assert (made["test_sounds"] == NOISE[:, : SMALL.samples]).all()
    with pytest.raises(ThimbleError, match="choose frontend=square_wave or frontend=mfcc"):
        NoFrontend().applied(data(NOISE))
    images = data(np.zeros((2, 8, 8, 1), np.uint8))
    assert NoFrontend().applied(images) is images
    with pytest.raises(ThimbleError, match="the data set has images: leave frontend out"):
        SMALL.applied(images)
    with pytest.raises(ThimbleError, match="have 500 samples, the front end takes 608"):
        SMALL.applied(data(NOISE[:, :500]))
    SMALL.check((9, 6, 1))
    with pytest.raises(ThimbleError, match="9 frames of 6 features, the network takes 6x9x1"):
        SMALL.check((6, 9, 1))
