"""The spectrogram by square waves against its equations, sample by sample; MFCCs against what is
computed for MLPerf Tiny; and what neither takes."""

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.frontends.mfcc import Mfcc
from pipeline.frontends.microfrontend import Microfrontend
from pipeline.frontends.none import NoFrontend
from pipeline.frontends.realtime import realtime
from pipeline.frontends.square_wave import RATE_HZ, TURN, SquareWave, log2_steps

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
            if (hertz := harmonic * ear.steps[m] * RATE_HZ / TURN) < 7_900:
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
    hertz = ear.steps[8] * RATE_HZ / TURN
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
    ("ear", "keys", "said"),
    [
        (SquareWave, {"bins": 33}, "frontend.bins=33: 1 to 32"),
        (SquareWave, {"chunk": 100}, "multiples of 32 up to 255"),
        (SquareWave, {"chunk": 256}, "multiples of 32 up to 255"),
        (SquareWave, {"low_hz": 0.0}, "above 0, in this order"),
        (SquareWave, {"high_hz": 8_000.0}, "below half of the 16,000 samples"),
        (SquareWave, {"history": 9}, "1 to 8 chunks"),
        (SquareWave, {"frames": 0}, "one frame at least"),
        (SquareWave, {"sample_shift": 9}, "0 to 8 bits"),
        (Mfcc, {"coefficients": 41}, "coefficients=41"),
        (Mfcc, {"frames": 0}, "of one frame at least"),
        (Microfrontend, {"frames": 0}, "frontend.frames=0: one frame at least"),
        (Mfcc, {"level": 0}, "frontend.level=0: 1 to 32768"),
        (Mfcc, {"scale": 0.0}, "what the network says of its input"),
        (Mfcc, {"zero_point": 128}, "-128 to 127"),
    ],
)
def test_what_is_impossible(
    ear: type[SquareWave | Mfcc | Microfrontend], keys: dict[str, float], said: str
) -> None:
    with pytest.raises(ThimbleError, match=said):
        ear(**keys)


def data(sounds: np.ndarray) -> dict[str, np.ndarray]:
    labels = np.zeros(len(sounds), np.uint8)
    return {f"{part}_{kind}": value for part in ("train", "validation", "test")
            for kind, value in (("images", sounds), ("labels", labels))}  # fmt: skip


def test_a_data_set_gets_features_and_keeps_the_test_sounds() -> None:
    """Sounds need a front end, and images none."""
    made = SMALL.applied(data(NOISE))
    assert made["train_images"].shape == (3, 9, 6, 1) and made["train_images"].dtype == np.uint8
    assert (made["test_sounds"] == NOISE[:, : SMALL.samples]).all()
    with pytest.raises(ThimbleError, match="choose frontend=square_wave, mfcc or"):
        NoFrontend().applied(data(NOISE))
    images = data(np.zeros((2, 8, 8, 1), np.uint8))
    assert NoFrontend().applied(images) is images
    with pytest.raises(ThimbleError, match="the data set has images: leave frontend out"):
        SMALL.applied(images)
    with pytest.raises(ThimbleError, match="have 500 samples, the front end takes 608"):
        SMALL.applied(data(NOISE[:, :500]))
    nothing = SMALL.applied(data(np.zeros((0, 1, 1, 1), np.uint8)))
    assert len(nothing["test_sounds"]) == len(nothing["test_images"]) > 0
    assert len(nothing["train_images"]) == len(nothing["test_labels"]) == 0
    SMALL.check((9, 6, 1))
    with pytest.raises(ThimbleError, match="9 frames of 6 features, the network takes 6x9x1"):
        SMALL.check((6, 9, 1))


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


def test_the_share_of_a_sound_that_the_cpu_computes() -> None:
    sounds = np.zeros((3, 8_000), np.int16)
    found = realtime({"compute_us": 125_000.0, "energy_uj": 8.0}, sounds)
    said = {"sound_us": 500_000.0, "realtime_factor": 0.25, "energy_second_uj": 16.0}
    assert found == said
    assert realtime({"compute_us": 1.0}, None) == {}
    assert realtime({}, np.zeros((1, 16_000), np.int16)) == {"sound_us": 1_000_000.0}
