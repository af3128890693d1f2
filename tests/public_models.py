"""Networks that others publish, which tests and benches compare with: never part of this project.

They are looked for in the folder ``THIMBLE_MODELS``, then in this project's cache of downloads,
where ``make models`` puts what is missing, checked by hash. No test downloads anything.
"""

import os
import sys
from pathlib import Path

import pooch  # type: ignore[import-untyped]
import pytest

MLCOMMONS = (
    "https://raw.githubusercontent.com/mlcommons/tiny/1afd2c9820f795965a6134facd0b4dfae41ef23f"
    "/benchmark/training"
)
ESPHOME = (
    "https://raw.githubusercontent.com/esphome/micro-wake-word-models"
    "/05b65922cc433c9df13e98e32a7fe520758c837e/models/v2"
)
FILES = {
    "mlperf_tiny/ad01_int8.tflite": (
        f"{MLCOMMONS}/anomaly_detection/trained_models/ad01_int8.tflite",
        "87cf24194ef93d1d9b11a591d805526b98008e351655d29883c825c9c106ba24",
    ),
    "mlperf_tiny/kws_ref_model.tflite": (
        f"{MLCOMMONS}/keyword_spotting/trained_models/kws_ref_model.tflite",
        "aeea436800704fce17b17292e4412630ad856e9d777c044c64ef748a880bd0ae",
    ),
    "mlperf_tiny/pretrainedResnet_quant.tflite": (
        f"{MLCOMMONS}/image_classification/trained_models/pretrainedResnet_quant.tflite",
        "3c002613d1b2475eb51dd78dfb85a546c8ae658dee71cf6ade43b022fe205415",
    ),
    "mlperf_tiny/vww_96_int8.tflite": (
        f"{MLCOMMONS}/visual_wake_words/trained_models/vww_96_int8.tflite",
        "597a384c8c2c8a1276f04702f25013b7838f2f814f1ca7c174d295b73e3d6b7b",
    ),
    "wake_words/okay_nabu.tflite": (
        f"{ESPHOME}/okay_nabu.tflite",
        "0689abe1912a95a3318a0d8cb2e67bad0cbcfe3e24dd6e050c75debddfb6f891",
    ),
    "wake_words/vad.tflite": (
        f"{ESPHOME}/vad.tflite",
        "7aa4db6d5fb7c5358609f6931e7847d303c16a43d178638bc14104f50d7eff5f",
    ),
}
"""By the name below the folder: where it is published, and its SHA-256."""

CACHE = Path(pooch.os_cache("thimble")) / "models"
LACKING = "MLPerf Tiny's models are not here: make models, or set THIMBLE_MODELS to their folder"


def folder(name: str) -> Path:
    """The folder ``name`` of models: the user's if it has one, else the one of ``make models``."""
    own = Path(os.environ.get("THIMBLE_MODELS") or CACHE) / name
    return own if own.is_dir() else CACHE / name


MODELS = folder("mlperf_tiny")
needs_models = pytest.mark.skipif(not MODELS.is_dir(), reason=LACKING)


def required() -> None:
    """End a program that would measure nothing."""
    if not MODELS.is_dir():
        sys.exit(LACKING)


def fetch(files: dict[str, tuple[str, str]], into: Path) -> None:
    """Fetch those of ``files`` that are not below ``into``.

    Raises:
        ValueError: what came is not what its hash says; it isn't kept.
    """
    urls, hashes = ({name: pair[n] for name, pair in files.items()} for n in (0, 1))
    store = pooch.create(into, base_url="", registry=hashes, urls=urls)
    for name in files:
        store.fetch(name)


if __name__ == "__main__":
    fetch(FILES, CACHE)
    print(f"{len(FILES)} models in {CACHE}")
