"""Paths as shells hand them over, which Hydra reads in quotes alone."""

from __future__ import annotations

from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from pipeline.runner.allowed import typed
from pipeline.runner.quoted import quoted


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("model.path=/daten/jürgen/net.onnx", ["/daten/jürgen/net.onnx"]),
        ("model.path=~/模型 (1).onnx", ["~/模型 (1).onnx"]),
        ("+model.path=a=b's #1 [x]{y}.onnx", ["a=b's #1 [x]{y}.onnx"]),
        ("data.path=C:\\ä\\", ["C:\\ä\\"]),
        ("data.path='schon in ü'", ["schon in ü"]),
        ("hydra.run.dir=outputs/${now:%Y}/ü", ["outputs/${now:%Y}/ü"]),
        ("model.path=a.tflite,ö.tflite,'ü, ü.tflite'", ["a.tflite", "ö.tflite", "ü, ü.tflite"]),
        ("model.path=choice(a.onnx,ö.onnx)", ["a.onnx", "ö.onnx"]),
        ('codegen.labels=[Hund,Kätzchen, "Bär, groß"]', ["Hund", "Kätzchen", "Bär, groß"]),
        ("package.library=Möbel", ["Möbel"]),
        ("model=möbel", ["möbel"]),
        ("model.path=net.onnx", ["net.onnx"]),
    ],
)
def test_what_is_typed_is_read(word: str, values: list[Any]) -> None:
    (read,) = quoted([word])
    assert read == word or not word.isascii() or "#" in word
    (found,) = typed((read,)).values()
    assert list(map(str, found)) == values
    OverridesParser.create().parse_override(read)


@pytest.mark.parametrize("word", ["-m", "--config-dir=/ö", "replay=outputs/ö", "strategy=[", "x"])
def test_what_is_no_override_of_hydras_is_left(word: str) -> None:
    assert quoted([word]) == [word]
