"""Every member of the zoo: exact counts, and what was published about it.

Peaks are those of ordinary execution, int8, an addition in the place of an operand that dies. Those
of the MLPerf Tiny four, of MobileNetV2, EfficientNet, RES and MicroNets were published; so were,
rounded, all but the last eight here (Pex, appendix D).

Counts are those of docs/zoo.md; quantized and planned, they are the same. A model may bring the
defaults of other groups; what is typed comes first.
"""

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from omegaconf import OmegaConf

from pipeline import passes
from pipeline.models.blocks import KINDS
from pipeline.plan.cost import cost
from pipeline.quantize.int8 import Int8
from pipeline.runner.options import checked
from pipeline.runner.schema import CODE_GROUPS, composed
from pipeline.strategies.ordinary import Ordinary
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.boards import load_hardware
from tests.models.counting import count, member, memory
from tests.tiers import quick


@dataclass(frozen=True)
class Row:
    """Read what docs/zoo.md says of a member."""

    name: str
    shape: str
    macs: int
    parameters: int
    peak_bytes: int


def cells(first: str) -> dict[str, list[str]]:
    """The cells of the page's table whose first column is ``first``, by the name in that column."""
    lines = Path("docs/zoo.md").read_text().partition(f"| {first} |")[2].splitlines()[2:]
    rows = takewhile(lambda line: line.startswith("|"), lines)
    split = ([cell.strip() for cell in line.strip("|").split("|")] for line in rows)
    return {name.strip("`"): rest for name, *rest in split}


TABLE = [
    Row(name, shape, *(int(figure.replace(",", "")) for figure in figures))
    for name, (shape, *figures, _) in cells("`model`").items()
]


QUICK = ("ds_cnn_s", "resnet8", "autoencoder", "mcunet_10fps", "lenet5")
FAMILIES = (
    *QUICK, "mobilenet_v1_vww", "mobilenet_v2_cifar10", "mobilenet_v3_small", "efficientnet_b0",
    "res8", "micronet_kws_s", "alexnet", "blocks", "googlenet", "one_block", "time_channel",
)  # fmt: skip
"""One of each, the smallest mostly, for CI; the first for ``make test``."""

Named = TypeVar("Named", Row, tuple[Any, ...])


def tiers(rows: list[Named]) -> list[Any]:
    """``rows`` begin with a network's name, or have one."""

    def of(names: tuple[str, ...]) -> list[Named]:
        return [row for row in rows if (row.name if isinstance(row, Row) else row[0]) in names]

    first, family = of(QUICK), of(FAMILIES)
    rest = [row for row in rows if row not in family]
    return quick(first, [*family, *rest], ci=min(4, len(family) - len(first)))


@pytest.mark.parametrize("row", tiers(TABLE), ids=lambda row: row.name)
def test_member(row: Row) -> None:
    """Also: it survives torch.export, on which the peak is computed."""
    model = member(row.name)
    counts = count(model)
    assert (counts.macs, counts.parameters) == (row.macs, row.parameters)
    assert counts.output == (1, model.classes)
    assert row.shape == "×".join(map(str, model.input_shape))
    assert memory(model).peak_bytes == row.peak_bytes


def test_every_member_is_in_the_table() -> None:
    nodes = [yaml.safe_load(path.read_text()) for path in Path("conf/model").glob("*.yaml")]
    own = {n["name"] for n in nodes if n["_target_"].startswith("pipeline.models.")}
    small = {
        p.stem for kind in ("record_*", "*_2kb") for p in Path("conf/model").glob(f"{kind}.yaml")
    }
    assert (
        own
        == {row.name for row in TABLE} | {"google12", "small_cnn", "vit_mnist", "norm_kws"} | small
    )


def test_mlperf_tiny_with_moving_statistics() -> None:
    """The "total params" of the Keras models that MLPerf Tiny publishes."""
    names = ("mobilenet_v1_vww", "ds_cnn_s", "resnet8", "autoencoder")
    assert [count(member(name)).values for name in names] == [221_794, 24_908, 78_666, 269_992]


PEX = [
    ("mobilenet_v2", 224, 1.0, "1505 kB", None, "301 M"),
    ("mobilenet_v2_pex", 224, 1.0, "978 kB", None, "295 M"),
    ("mobilenet_v2", 172, 1.0, "888 kB", None, "193 M"),
    ("mobilenet_v2", 90, 0.5, "123 kB", "1990 kB", "18 M"),
    ("mobilenet_v2_vww", 80, 1.0, "192 kB", "2.3 MB", "42.7 M"),
    ("mobilenet_v2_vww", 96, 1.0, "276 kB", "2.3 MB", "55.1 M"),
    ("mobilenet_v2_vww", 112, 1.0, "376 kB", "2.3 MB", "81.0 M"),
    ("mobilenet_v2_vww", 128, 1.0, "492 kB", "2.3 MB", "97.9 M"),
    ("mobilenet_v2_vww", 144, 1.0, "622 kB", "2.3 MB", "132 M"),
    ("mobilenet_v2_vww", 160, 1.0, "768 kB", "2.3 MB", "153 M"),
    ("mobilenet_v2_vww", 176, 1.0, "929 kB", "2.3 MB", "194 M"),
    ("efficientnet_b0", 0, 0, "768 kB", "3987 kB", "187 M"),
    ("mcunet_s", 0, 0, "333 kB", "748 kB", "67.4 M"),
    ("mcunet_m", 0, 0, "341 kB", "756 kB", "81.9 M"),
    ("mcunet_l", 0, 0, "422 kB", "1757 kB", "126 M"),
    ("micronet_kws_l", 0, 0, "170 kB", "512 kB", "65.7 M"),
    ("micronet_kws_m", 0, 0, "86.1 kB", "117 kB", "15.6 M"),
    ("micronet_kws_s", 0, 0, "51.6 kB", "63.5 kB", "8.4 M"),
    ("micronet_kws_l_base", 0, 0, "170 kB", "582 kB", "74.3 M"),
    ("res8", 0, 0, "23.7 kB", "112 kB", "4.16 M"),
    ("res15", 0, 0, "66.2 kB", "240 kB", "116 M"),
    ("ds_cnn_l", 0, 0, "86.9 kB", "420 kB", "28.3 M"),
    ("ds_cnn_m", 0, 0, "54.2 kB", "140 kB", "9.83 M"),
    ("ds_cnn_s", 0, 0, "16.0 kB", "24.3 kB", "2.66 M"),
]


@pytest.mark.parametrize(("name", "side", "width", "peak", "size", "macs"), tiers(PEX))
def test_pex(name: str, side: int, width: float, peak: str, size: str | None, macs: str) -> None:
    """Liberis & Lane 2023, table 3 and appendix D, ordinary execution: int8 weights and int32
    biases; multiply-accumulates also of averages and sums, but not of squeeze-excitation."""
    changes = {"input_shape": (side, side, 3), "width": width} if side else {}
    model = member(name, **changes)
    counts, needed = count(model), memory(model)
    agrees(peak, needed.peak_bytes)
    agrees(macs, counts.macs + (0 if "efficientnet" in name else needed.elementwise))
    if size is not None:
        agrees(size, counts.weight_bytes)


def agrees(printed: str, ours: int) -> None:
    """Pex rounds some figures and cuts off others: less than one unit of the last digit apart."""
    number, unit = printed.split()
    factor = {"kB": 1e3, "MB": 1e6, "M": 1e6}[unit]
    last = 10.0 ** -len(number.partition(".")[2])
    assert abs(ours / factor - float(number)) < last, f"{ours} is not {printed}"


@pytest.mark.parametrize(
    ("name", "written", "weights"),
    [
        ("vgg16", "15.09 MB", "138 MB"),
        ("alexnet", "0.78 MB", "62 MB"),
        ("mobilenet_v1", "5.04 MB", "4 MB"),
    ],
)
def test_swapnn(name: str, written: str, weights: str) -> None:
    """Miao & Lin 2021: feature maps written a frame; table 2, size of weights."""
    model = member(name)
    agrees(written, memory(model).written)
    agrees(weights, count(model).parameters)


def test_the_original_efficientnet() -> None:
    """Tan & Le 2019, table 2: 5.3 M parameters, 0.39 B multiply-accumulates."""
    counts = count(member("efficientnet_b0", headless=False, input_shape=(224, 224, 3)))
    assert counts.parameters == 5_288_548
    assert round(counts.macs / 1e9, 2) == 0.39


QUICK_MACS, CI_MACS = 3_000_000, 9_000_000


def tier(row: Row) -> list[pytest.MarkDecorator]:
    marks = (pytest.mark.ci, pytest.mark.slow)
    return [m for m, macs in zip(marks, (QUICK_MACS, CI_MACS), strict=True) if row.macs > macs]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name, marks=tier(row)) for row in TABLE])
def test_counts_survive(row: Row) -> None:
    model, hardware = member(row.name), load_hardware("host")
    weights = RandomWeights(images=4).train(model, {}, Run(1)).weights
    graph = Int8(images=2).graph(row.name, model, weights, {})
    graph = passes.applied(graph, ["constants", "fold_reshape", "fold_pad"])
    plan = Ordinary().plan(graph, hardware)
    costs = cost(plan, graph, hardware)
    assert dict(plan.notes) == {"order_proved": True, "arena_proved": True}
    assert (costs.pmu_bytes, costs.over_bound_bytes) == (row.peak_bytes, 0)
    assert costs.macs == costs.macs_executed == row.macs


def test_the_table_of_blocks() -> None:
    documented = {kind: first for kind, (first, *_) in cells("`kind`").items()}
    assert documented == {
        kind: ", ".join(f"`{k}`" + ("" if v is None else f" {v}") for k, v in options.items())
        for kind, (_, options) in KINDS.items()
    }


GROUPS = ("data", "train", "prune", "quantize", "strategy")
MEMBERS = sorted(
    path.stem
    for path in Path("conf/model").glob("*.yaml")
    if "defaults: [/untrained, _self_]" in path.read_text()
)


def chosen(*overrides: str) -> list[str]:
    config = composed(*overrides)
    return [config[group].name for group in GROUPS]


@pytest.mark.parametrize("name", quick(3, MEMBERS, ci=4))
def test_members_need_no_data_set(name: str) -> None:
    config = composed(f"model={name}")
    assert config.model.name == name
    assert " ".join(config[group].name for group in GROUPS) == "none random none int8 ordinary"
    for group in CODE_GROUPS:
        checked(group, OmegaConf.to_container(config[group], resolve=True))


def test_what_is_typed_comes_first_then_an_experiment_then_the_model() -> None:
    """The default model is trained."""
    assert len(MEMBERS) >= 26
    assert chosen() == ["mnist", "paper_quick", "none", "int4", "herringbone"]
    typed = chosen("model=resnet8", "data=cifar10", "train=float", "prune=magnitude")
    assert typed == ["cifar10", "float", "magnitude", "int8", "ordinary"]
    assert chosen("strategy=naive", "model=res15")[-1] == "naive"
    assert chosen("experiment=gural_mnist", "model=resnet8")[1] == "released"


def test_images_in_folders_get_the_models_shape() -> None:
    config = composed("model=mobilenet_v1_vww", "data=folder", "data.path=x")
    assert config.data.shape == [96, 96, 3]
    del config.model["input_shape"]  # a network from a file has none in the config
    assert config.data.shape == []
