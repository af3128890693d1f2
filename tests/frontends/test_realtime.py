import numpy as np

from pipeline.frontends.realtime import realtime


def test_the_share_of_a_sound_that_the_cpu_computes() -> None:
    sounds = np.zeros((3, 8_000), np.int16)
    assert realtime({"compute_us": 125_000.0}, sounds) == {
        "sound_us": 500_000.0,
        "realtime_factor": 0.25,
    }


def test_nothing_without_sounds_or_without_a_count_of_cycles() -> None:
    assert realtime({"compute_us": 1.0}, None) == {}
    assert realtime({}, np.zeros((1, 16_000), np.int16)) == {"sound_us": 1_000_000.0}
