"""What a stage would find after minutes of training is said before any stage runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from pipeline.errors import ThimbleError
from pipeline.runner import allowed, options, own, schema
from pipeline.runner.allowed import typed
from pipeline.runner.job import resolved
from pipeline.runner.messages import explain
from pipeline.runner.quoted import quoted


def composed(*overrides: str) -> Any:
    allowed.listen(overrides)
    return schema.composed(*overrides, hydra=True)


def plain(*overrides: str) -> dict[str, Any]:
    return resolved(schema.composed(*overrides))


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test has typed."""
    monkeypatch.setenv(allowed.WORDS, "[]")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THIMBLE_TYPED", str(tmp_path))
    (tmp_path / "net.tflite").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


NET = ("model=torch", "model.factory=a.b:Net", "model.input_shape=[8,8,1]")
TFLITE, TORCH = ("model=tflite", "model.path=net.tflite"), ("model=torch", "model.factory=a.b:Net")


@pytest.mark.parametrize(
    "words",
    [
        (),
        TFLITE,
        NET,
        ("target=flash", "target.dry_run=true"),
        ("target=flash", "until=build"),
        ("prune=magnitude",),
        (*NET, "train=float"),
        (*NET, "prune=magnitude", "prune.epochs=0"),
        ("model=resnet8", "data=cifar10", "prune=pex", "prune.macs=9"),
    ],
)
def test_what_is_right_passes(here: Path, words: tuple[str, ...]) -> None:
    options.check(composed(*words))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hardware.sram_bytes=0",), "hardware.sram_bytes=0: give 1 or more"),
        (("hardware.power.idle_ma=???",), "needs hardware.power.idle_ma: add hardware.power.idle"),
        (("hardware.flash_bytes=-4",), "hardware.flash_bytes=-4: give 1 or more"),
        (("codegen.prefix=2nd-net",), "a letter first: try codegen.prefix=nd_net"),
        (("package=arduino", "hardware=host"), "hardware=host is no Arduino with an AVR; try pack"),
        (("sliding.windows=0",), "sliding.windows=0: give 1 or more"),
        (("package=arduino", "frontend=square_wave"), "none listens as frontend=square_wave asks"),
        (("package=platformio", "hardware=host"), "hardware=host is not known to be one of its"),
        (("package=cmake", "until=quantize"), "until=quantize ends before there is one; until=sch"),
        (("target=flash",), "target=flash needs target.port, e.g. /dev/ttyACM0; it runs: avrdude"),
        (("target=flash", "target.port=/dev/nothing"), "no board at /dev/nothing: connect it or"),
        (("target=flash", "hardware=host"), "hardware host has no flasher: set hardware.flasher"),
        (("target=flash", "hardware=nucleo_f446re", "hardware.uart.base=0"), "UART is not known"),
        (("target=flash", "hardware.baud=12345"), "hardware.baud=12345: this computer has no such"),
        (("target.images=-1",), "target.images=-1: give 0 or more"),
        (("model=tflite",), "model=tflite needs model.path: add model.path=FILE"),
        (("model=onnx", "model.path=folder"), "model.path=folder is a folder: give a file"),
        (("model=onnx", "model.path=pipe"), "model.path=pipe is a pipe or a device: give a file"),
        (("model=onnx", "model.path=no.onnx"), "model.path=no.onnx: there is no such file, looked"),
        (("data=npz", "data.path=no.npz"), "data.path=no.npz: there is no such file, looked"),
        ((*TFLITE, "prune=magnitude"), "prune=magnitude: model=tflite arrives with its weights"),
        (("prune=pex", "quantize=int4"), "prune=pex: quantize=int4 takes chains of layers, which"),
        (("model=resnet8", "prune=pex", "prune.macs=-1"), "prune.macs=-1: give the MACs that"),
        (("model=resnet8", "prune=pex"), "prune=pex needs a limit: prune.pmu_bytes, weight_bytes"),
        (("model=resnet8", "prune=width", "prune.width=1.5"), "prune.width=1.5"),
        (("model=resnet8", "prune=pex", "prune.macs=9", "prune.epochs=-1"), "prune.epochs=-1"),
        (("prune=magnitude", "prune.ratio=-1"), "prune.ratio=-1"),
        (("model=resnet8", "prune=pex", "prune.macs=9", "sliding.windows=2"), "prune.macs: a limit "
         "holds for one window, and sliding.windows=2"),
        (("prune=magnitude", "data=none", "train=random"), "prune.epochs=8: fine-tuning needs "
         "labelled images, and data=none has none"),
        (("model=resnet8", "prune=width"), "prune=width needs either prune.width, such as 0.5, or"),
        (("model=resnet8", "hardware=host", "prune=pex", "prune.pmu_bytes=3071"), "prune.pmu_bytes="
         "3071: the input alone takes 3,072 B, and pruning does not make it"),
        (TORCH, "model=torch needs model.input_shape: add model.input_shape=[height,width,chann"),
        (("model=torch",), "needs model.factory and model.input_shape: add model.factory=package."),
        ((*TORCH, "model.input_shape=[8,8,1]", "model.state_dict=w.pt"), "model.state_dict=w.pt: "),
        (("strategy.rows=4",), "unknown key strategy.rows: strategy has _target_, name, layout, "),
        (("strategy.layuot=slots",), "unknown key strategy.layuot: did you mean strategy.layout?"),
        (("strategy.layout=heap",), "strategy.layout: Invalid value 'heap', expected one of [slo"),
        (("train.batch=many",), "train.batch: Value 'many' of type 'str' could not be converted"),
        (("strategy._target_=os.system",), "_target_ 'os.system' is outside pipeline.*: refused"),
        (("strategy._target_=pipeline.strategies.tiny.Tiny",), "tiny.Tiny' does not exist: there"),
        (("~strategy.name",), "strategy.name is missing: each file in conf/strategy/ gives it"),
        (("hardware=arduin",), "unknown hardware 'arduin': did you mean hardware=arduino"),
        (("hardware.sram_byte=1",), "key hardware.sram_byte: did you mean hardware.sram_bytes?"),
        (("hardware.sram_bytes=much",), "hardware.sram_bytes: Value 'much' of type 'str'"),
        (("hardwre=arduino",), "unknown key hardwre: did you mean hardware?"),
        (("hardwre.sram_bytes=1",), "unknown key hardwre: did you mean hardware? the top level"),
        (("until=never",), "until: Invalid value 'never', expected one of [fetch, train,"),
        (("strategy=[",), "strategy=[: not understood, write key=value"),
        (("sweep=none_such",), "unknown sweep 'none_such': there are architectures, "),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(here: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises((ThimbleError, HydraException, OmegaConfBaseException)) as caught:
        options.check(composed(*words))
    line = str(explain(caught.value))
    assert said in line and "\n" not in line


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ((), "mnist_2kb"),
        (TFLITE, "net"),
        ((*TORCH, "model.input_shape=[8,8,1]"), "Net"),
        (("model=resnet8",), "resnet8"),
    ],
)
def test_a_network_is_called_by_its_own_name(here: Path, words: tuple[str, ...], name: str) -> None:
    assert plain(*words)["model"]["name"] == name


@pytest.mark.ci
def test_a_name_does_not_depend_on_the_place_nor_the_planner_is_part_of_pruning() -> None:
    found = {"model": {"name": "onnx", "path": "/some/where/my.net.onnx"}}
    own.named(found)
    assert found["model"]["name"] == "my.net"
    words = ("model=resnet8", "hardware=nucleo_f446re", "strategy=partial", "prune=magnitude")
    without, within = (plain(*words, *more) for more in ((), ("prune.macs=9",)))
    assert not {"strategy", "hardware", "passes"} & without["prune"].keys()
    assert within["prune"]["strategy"] == within["strategy"]
    board = within["prune"]["hardware"]
    assert board["cpu"] == "cortex-m4" and not {"uart", "toolchain", "flasher"} & board.keys()
    assert "hardware" not in plain()["prune"]


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
