"""quantization.csv: figures by their definition, which layers are named, and what is advised."""

import csv
from io import StringIO
from math import inf, log10

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.importers.float_passes import simplified
from pipeline.importers.torch_export import exported
from pipeline.quantize.errors import Row, errors, to_csv, worst
from pipeline.quantize.int8 import Int8


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)).eval()


def db(signal: np.ndarray, noise: np.ndarray) -> float:
    return 10 * log10((signal**2).sum() / (noise**2).sum())


def test_by_their_definition() -> None:
    floats = exported("net", network(), torch.zeros(1, 2, 6, 6))
    rng = np.random.default_rng(0)
    data = {"train_images": rng.integers(0, 256, (20, 6, 6, 2)).astype(np.uint8)}
    graph = Int8().from_float(floats, data)
    rows = Int8().errors(floats, {}, graph, data)
    assert [row.operator for row in rows] == ["Convolution", "Linear"]
    chosen = np.unique(np.linspace(0, 19, 16).astype(np.int64))
    stored = data["train_images"][chosen].astype(np.int64) - 128
    found = {
        name: graph.tensors[name].scale[0] * (q - graph.tensors[name].zero_point)
        for name, q in graph.run(stored).items()
    }
    plain = simplified(floats)
    exact = dict(plain.walk(torch.from_numpy(found[graph.input]).float()))
    last, made = plain.nodes[-1], found[graph.output]
    with torch.no_grad():
        own = last.evaluate([torch.from_numpy(found[last.inputs[0]]).float()]).numpy()
    wanted = exact[graph.output].numpy()
    assert rows[-1].sqnr_db == pytest.approx(db(wanted, wanted - made), abs=0.01)
    assert rows[-1].own_sqnr_db == pytest.approx(db(own, own - made), abs=0.01)
    assert rows[-1].crest == pytest.approx(abs(own).max() / (own**2).mean() ** 0.5, rel=1e-3)
    assert 20 < rows[-1].sqnr_db < rows[-1].own_sqnr_db


def test_what_a_narrow_range_cuts_off() -> None:
    floats = exported("net", network(), torch.zeros(1, 2, 6, 6))
    data = {"train_images": np.full((1, 6, 6, 2), 255, np.uint8)}
    dim = {"train_images": data["train_images"] // 4}
    row = Int8().errors(floats, {}, Int8().from_float(floats, dim), data)[0]
    assert row.clipped_pct > 99 and row.own_sqnr_db < 10


def row(layer: str, own: float, clipped: float = 0.0, crest: float = 3.0) -> Row:
    return Row("t", layer, "Linear", 20.0, own, clipped, crest)


def test_the_three_worst_are_named_and_what_to_try() -> None:
    rows = [
        row("a", inf), row("b", 12.5, clipped=70.0), row("c", 15.0, crest=40.0), row("d", 44.0),
        row("e", 19.0),
    ]  # fmt: skip
    content = to_csv(rows)
    assert next(csv.DictReader(StringIO(content)))["own_sqnr_db"] == "inf"
    said = worst(content)
    assert said[0].startswith("b (12.50 dB): 70.00 %") and "observer=minmax" in said[0]
    assert "observer=percentile" in said[1] and "int8_qat" in said[2] and len(said) == 3
    assert worst(to_csv([rows[0], rows[3]])) == ["d (44.00 dB): it loses little"]
    assert worst("") == worst(to_csv([])) == []
    assert errors(exported("n", nn.ReLU(), torch.zeros(1, 4)), Int8().from_float(
        exported("n", nn.ReLU(), torch.zeros(1, 4))), [])[0].sqnr_db == 0.0  # fmt: skip
