"""Every member of the zoo: exact counts, and what was published about it.

Peaks are those of ordinary execution, int8, an addition in the place of an operand that dies. Those
of the MLPerf Tiny four, of MobileNetV2, EfficientNet, RES and MicroNets were published; so were,
rounded, all but the last eight here (Pex, appendix D).

Quantized and planned, counts are the same, and docs/zoo.md says them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from pipeline import passes
from pipeline.hardware import Hardware
from pipeline.models.blocks import KINDS
from pipeline.plan.cost import cost
from pipeline.quantize.int8 import Int8
from pipeline.strategies.ordinary import Ordinary
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.boards import load_hardware
from tests.models.counting import count, member, memory
from tests.tiers import quick


@dataclass(frozen=True)
class Row:
    name: str
    macs: int
    parameters: int
    outputs: int
    peak_bytes: int


TABLE = [
    Row("mobilenet_v1_vww", 7_489_664, 216_322, 2, 55_296),
    Row("ds_cnn_s", 2_656_768, 23_756, 12, 16_000),
    Row("resnet8", 12_501_632, 78_186, 10, 49_152),
    Row("autoencoder", 264_192, 267_928, 640, 768),
    Row("mobilenet_v2", 300_774_272, 3_504_872, 1000, 1_505_280),
    Row("mobilenet_v2_pex", 294_351_744, 3_508_968, 1000, 978_432),
    Row("mobilenet_v2_vww", 42_625_536, 2_226_434, 2, 192_000),
    Row("mobilenet_v3_small", 56_510_400, 2_542_856, 1000, 351_232),
    Row("efficientnet_b0", 186_578_400, 3_916_388, 1000, 768_000),
    Row("res8", 4_135_590, 110_307, 12, 23_670),
    Row("res15", 116_292_240, 237_882, 12, 66_150),
    Row("ds_cnn_m", 9_816_384, 138_128, 12, 54_180),
    Row("ds_cnn_l", 28_327_812, 416_772, 12, 86_940),
    Row("micronet_kws_s", 8_326_752, 62_424, 12, 51_660),
    Row("micronet_kws_m", 15_556_352, 115_064, 12, 86_100),
    Row("micronet_kws_l", 65_714_076, 508_104, 12, 169_740),
    Row("micronet_kws_l_base", 74_240_412, 577_404, 12, 169_740),
    Row("mcunet_s", 67_287_200, 729_392, 1000, 332_800),
    Row("mcunet_m", 81_785_520, 737_408, 1000, 340_736),
    Row("mcunet_l", 125_874_400, 1_732_640, 1000, 422_400),
    Row("mcunet_10fps", 6_364_224, 749_840, 1000, 46_080),
    Row("mcunet_5fps", 12_790_096, 636_232, 1000, 92_160),
    Row("mobilenet_v1", 568_740_352, 4_231_976, 1000, 1_204_224),
    Row("alexnet", 1_135_256_096, 62_378_344, 1000, 444_987),
    Row("vgg16", 15_470_264_320, 138_357_544, 1000, 6_422_528),
    Row("lenet5", 416_520, 61_706, 10, 5_880),
    Row("blocks", 9_388_880, 24_088, 2, 147_456),
    Row("mobilenet_v2_cifar10", 7_119_232, 184_362, 10, 49_152),
    Row("resnet18", 1_814_073_344, 11_689_512, 1000, 1_003_520),
    Row("googlenet", 1_582_671_872, 7_005_832, 1000, 1_003_520),
    Row("resnet10_cifar10", 15_952_384, 1_228_970, 10, 24_576),
    Row("one_block", 36_016, 386, 2, 1_520),
    Row("time_channel", 157_728, 4_404, 12, 3_520),
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
    assert counts.output == (1, row.outputs)
    assert memory(model).peak_bytes == row.peak_bytes


def test_every_member_is_in_the_table() -> None:
    nodes = [yaml.safe_load(path.read_text()) for path in Path("conf/model").glob("*.yaml")]
    own = {n["name"] for n in nodes if n["_target_"].startswith("pipeline.models.")}
    small = {
        p.stem for kind in ("record_*", "*_2kb") for p in Path("conf/model").glob(f"{kind}.yaml")
    }
    assert own == {row.name for row in TABLE} | {"google12", "small_cnn"} | small


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("mobilenet_v1_vww", 221_794),
        ("ds_cnn_s", 24_908),
        ("resnet8", 78_666),
        ("autoencoder", 269_992),
    ],
)
def test_mlperf_tiny_with_moving_statistics(name: str, values: int) -> None:
    """The "total params" of the Keras models that MLPerf Tiny publishes."""
    assert count(member(name)).values == values


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


@pytest.fixture(scope="module")
def hardware() -> Hardware:
    return load_hardware("host")


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name, marks=tier(row)) for row in TABLE])
def test_counts_survive(row: Row, hardware: Hardware) -> None:
    model = member(row.name)
    weights = RandomWeights(images=4).train(model, {}, Run(1)).weights
    graph = Int8(images=2).graph(row.name, model, weights, {})
    graph = passes.applied(graph, ["constants", "fold_reshape", "fold_pad"])
    plan = Ordinary().plan(graph, hardware)
    costs = cost(plan, graph, hardware)
    assert dict(plan.notes) == {"order_proved": True, "arena_proved": True}
    assert (costs.pmu_bytes, costs.over_bound_bytes) == (row.peak_bytes, 0)
    assert costs.macs == costs.macs_executed == row.macs


def rows(first: str) -> dict[str, list[str]]:
    """The cells of the table whose first column is ``first``, by the name in that column."""
    lines = Path("docs/zoo.md").read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    found = {}
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found[name.strip("`")] = cells
    return found


def test_the_table_of_members() -> None:
    documented = rows("`model`")
    assert list(documented) == [row.name for row in TABLE]
    for row in TABLE:
        shape = "×".join(map(str, member(row.name).input_shape))
        figures = [f"{n:,}" for n in (row.macs, row.parameters, row.peak_bytes)]
        assert documented[row.name][:4] == [shape, *figures]


def test_the_table_of_blocks() -> None:
    documented = {kind: cells[0] for kind, cells in rows("`kind`").items()}
    assert documented == {
        kind: ", ".join(f"`{k}`" + ("" if v is None else f" {v}") for k, v in options.items())
        for kind, (_, options) in KINDS.items()
    }
