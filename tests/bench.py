"""``make bench``: cached runs, how soon a network's memory is known, generated C on this computer.

On the smallest data and training, in homes of its own; prints what was measured, beside what it
must be where there is a limit.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pipeline.home import ROOT
from pipeline.targets.predictor import Predictor
from tests.public_models import MODELS, required

RUN = [sys.executable, str(ROOT / "run.py")]
COMMAND = [*RUN, "data=synthetic", "train=smoke"]
SWEEP = ["-m", f"target.images={','.join(map(str, range(1, 101)))}", "hydra/launcher=joblib"]
MOST_SECONDS = {"cached run, until its result is printed": 3, "100 cached jobs": 90}

KEYWORDS = MODELS / "kws_ref_model.tflite"
COLD = [f"model.path={KEYWORDS}", "model=tflite", "hardware=nucleo_l4r5zi", "until=schedule"]
COLD_SECONDS = 5
WHOLE = [word for word in COLD if not word.startswith("until")]
WHOLE_SECONDS = 8

NETWORKS = ("ds_cnn_s", "resnet8", "mobilenet_v1_vww")
IMAGES = 200


def timed(command: Sequence[str], folder: str, home: str = "home") -> tuple[float, Any]:
    """Seconds, and the JSON that the command printed."""
    env = {**os.environ, "THIMBLE_HOME": f"{folder}/{home}"}
    begin = time.monotonic()
    words = [*command, "output=json", "tracking=none"]
    done = subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True, text=True)
    return time.monotonic() - begin, json.loads(done.stdout.splitlines()[-1])


def runs(folder: str) -> Iterator[tuple[str, float, float]]:
    """(what, seconds, at most)."""
    print("filling the cache: about 2 minutes")
    timed(COMMAND, folder)
    timed([*COMMAND, *SWEEP], folder)
    single, sweep = MOST_SECONDS.items()
    yield single[0], min(timed(COMMAND, folder)[0] for _ in range(3)), single[1]
    yield sweep[0], timed([*COMMAND, *SWEEP], folder)[0], sweep[1]
    cold = min(timed([*RUN, *COLD], folder, f"cold{n}")[0] for n in range(3))
    yield f"{KEYWORDS.name}, nothing cached, until=schedule", cold, COLD_SECONDS
    whole = min(timed([*RUN, *WHOLE], folder, f"whole{n}")[0] for n in range(3))
    yield f"{KEYWORDS.name}, nothing cached, all stages", whole, WHOLE_SECONDS


def native(folder: str) -> Iterator[str]:
    """Images and multiply-accumulates a second of the C that a run generates, on one core."""
    for name in NETWORKS:
        words = [*RUN, f"model={name}", "hardware=host", "until=generate"]
        result = timed(words, folder)[1]
        predictor = Predictor.of(result["run_dir"])
        shape = (IMAGES, *predictor.input.shape)
        images = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
        predictor.predict(images[:8])
        begin = time.monotonic()
        predictor.predict(images)
        rate = IMAGES / (time.monotonic() - begin)
        speed = rate * result["macs"] / 1e9
        yield f"{name}: {rate:,.0f} images/s on one core, {speed:.2f}e9 MACs/s"


def main() -> int:
    required()
    exceeded = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for what, value, most in runs(folder):
            print(f"{what}: {value:.2f} s (at most {most} s)", flush=True)
            exceeded += value > most
        for line in native(folder):
            print(line, flush=True)
    return int(exceeded > 0)


if __name__ == "__main__":
    sys.exit(main())
