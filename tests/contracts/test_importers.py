"""What every option of conf/model that imports a user's network keeps to: one that is there is
tested here, with what tests/contracts/importers.py holds for its class."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import yaml

from pipeline.config import own_target
from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import frames, host
from tests.comparing import equal
from tests.contracts.importers import SAMPLES, Sample, written

DAMAGED = 60
LONGEST = 1000
"""Characters of a refusal."""


def listed() -> list[str]:
    """The ``_target_`` of each importer among the models."""
    found = []
    for path in sorted((ROOT / "conf" / "model").glob("*.yaml")):
        target = own_target(yaml.safe_load(path.read_text()))
        if target.startswith("pipeline.importers."):
            found.append(target)
    return found


@pytest.fixture(params=listed(), ids=lambda target: target.rpartition(".")[2])
def sample(request: pytest.FixtureRequest) -> Sample:
    module, _, name = request.param.rpartition(".")
    kind = getattr(import_module(module), name)
    assert kind in SAMPLES, f"give a sample of {name} in tests/contracts/importers.py"
    return SAMPLES[kind]


def test_there_are_importers() -> None:
    assert len(listed()) == len(set(listed())) == len(SAMPLES)


def test_a_small_network_is_imported_planned_and_run(sample: Sample, tmp_path: Path) -> None:
    graph = sample.imported(written(tmp_path, sample.small))
    given = frames(graph, 4)
    outputs = graph.outputs(given)
    assert outputs.shape == (4, *graph.tensors[graph.output].shape)
    assert len(np.unique(outputs.reshape(4, -1), axis=0)) > 1, "it depends on its input"
    plan = Ordinary().plan(graph, host())
    verify(roomy(plan), graph)
    equal([interpret(plan, graph, frame).output for frame in given], outputs)


def test_the_same_file_gives_the_same_graph(sample: Sample, tmp_path: Path) -> None:
    path = written(tmp_path, sample.small)
    assert sample.imported(path).hash == sample.imported(path).hash


def test_an_operator_that_is_not_supported_is_named_in_one_line(
    sample: Sample, tmp_path: Path
) -> None:
    with pytest.raises(ThimbleError, match=f"(?i){sample.operator}.*not supported") as caught:
        sample.unsupported(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_one_line_or_a_network(sample: Sample, tmp_path: Path) -> None:
    rng, refused = np.random.default_rng(0), 0
    for number in range(DAMAGED):
        content = bytearray(sample.small)
        if number % 2:
            del content[int(rng.integers(len(content))) :]
        else:
            for _ in range(8):
                content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        try:
            with np.errstate(all="ignore"):
                sample.imported(written(tmp_path, bytes(content)))
        except ThimbleError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < LONGEST
    assert refused > DAMAGED // 3


def test_a_file_that_is_not_there_is_one_line(sample: Sample, tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=r"no such file|does not exist") as caught:
        sample.imported(tmp_path / "absent.pt")
    assert "\n" not in str(caught.value)
