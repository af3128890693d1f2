"""What a stage would find is said before any runs, and what is not installed; the doctor."""

import functools
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.runner import allowed, described, doctor, needs, options, own, schema, versions
from pipeline.runner.allowed import typed
from pipeline.runner.job import resolved
from pipeline.runner.messages import explain
from pipeline.runner.quoted import quoted
from tests import programs
from tests.programs import refusal
from tests.runner.project import Project
from tests.runner.test_mistakes import one_line
from tests.tiers import quick


def composed(*overrides: str) -> Any:
    allowed.listen(overrides)
    return schema.composed(*overrides, hydra=True)


def plain(*overrides: str) -> dict[str, Any]:
    return resolved(schema.composed(*overrides))


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test has typed."""
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


def test_an_avr_runs_in_the_sram_that_it_has(here: Path) -> None:
    planned, run = (composed("hardware.sram_bytes=8192", f"until={u}") for u in ("build", "prove"))
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        options.check(planned)
        with pytest.raises(ThimbleError, match=r"the atmega328p that .+ has 2,048 B: leave it"):
            options.check(run)


@pytest.mark.parametrize(
    ("words", "said"),
    quick(25, [
        (("hardware.sram_bytes=0",), "hardware.sram_bytes=0: give 1 or more"),
        (("hardware.power.idle_ma=???",), "needs hardware.power.idle_ma: add hardware.power.idle"),
        (("hardware.flash_bytes=-4",), "hardware.flash_bytes=-4: give 1 or more"),
        (("codegen.prefix=2nd-net",), "a letter first: try codegen.prefix=nd_net"),
        (("package=arduino", "hardware=host"), "hardware=host is not known to have an Arduino"),
        (("sliding.rows=-1",), "sliding.rows=-1: give 0 or more"),
        (("target=flash", "target.check=layers"), "does not say what its layers write: target=sim"),
        (("strategy=swap", "strategy.frames=2", "target.check=layers"), "one frame at a time"),
        (("hardware=stm32f746g_sd", "hardware.card.engine=stm32f756"), "there is no driver for it"),
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
        (("model=resnet8", "prune=pex", "prune.macs=9", "sliding.rows=2"), "prune.macs: a limit "
         "holds for a whole window, and sliding.rows=2"),
        (("prune=magnitude", "data=none", "train=random"), "prune.epochs=8: fine-tuning needs "
         "labelled images, and data=none has none"),
        (("model=resnet8", "prune=width"), "prune=width needs either prune.width, such as 0.5, or"),
        (("model=resnet8", "hardware=host", "prune=pex", "prune.pmu_bytes=3071"), "prune.pmu_bytes="
         "3071: the input alone takes 3,072 B, and pruning does not make it"),
        (("model=torch",), "model=torch needs model.factory: add model.factory=package.module:Net"),
        ((*TORCH, "model.input_shape=[8,8,1]", "model.state_dict=w.pt"), "model.state_dict=w.pt: "),
        (("strategy.rows=4",), "unknown key strategy.rows: strategy has _target_, name, layout, "),
        (("strategy.layuot=slots",), "unknown key strategy.layuot: did you mean strategy.layout?"),
        (("strategy.layout=heap",), "strategy.layout: Invalid value 'heap', expected one of [slo"),
        (("train.batch=many",), "train.batch: Value 'many' of type 'str' could not be converted"),
        (("strategy._target_=os.system",), "_target_ 'os.system' is outside pipeline.*: refused"),
        (("strategy._target_=pipeline.strategies.tiny.Tiny",), "tiny.Tiny' does not exist: there"),
        (("~strategy.name",), "strategy.name is missing: each file in conf/strategy/ gives it"),
        (("hardware=arduin",), "unknown hardware 'arduin': did you mean hardware=arduino"),
        (("hardware=cortex_m33",), "core (the nearest is cortex_m33f): docs/contributing.md says"),
        (("hardware.sram_byte=1",), "key hardware.sram_byte: did you mean hardware.sram_bytes?"),
        (("hardware.sram_bytes=much",), "hardware.sram_bytes: Value 'much' of type 'str'"),
        (("hardwre=arduino",), "unknown key hardwre: did you mean hardware?"),
        (("hardwre.sram_bytes=1",), "unknown key hardwre: did you mean hardware? the top level"),
        (("until=never",), "until: Invalid value 'never', expected one of [import, fetch,"),
        (("strategy=[",), "strategy=[: not understood, write key=value"),
        (("sweep=none_such",), "unknown sweep 'none_such': there are appendix_e, "),
    ]),
)  # fmt: skip
def test_mistakes_are_one_line(
    here: Path, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OC_CAUSE", "1")  # as under a debugger or coverage.py
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


@functools.cache
def whole(*words: str) -> dict[str, Any]:
    return schema.plain(schema.composed(*words))


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The programs and headers that are not there; all others are."""
    gone: set[str] = set()
    monkeypatch.setattr(shutil, "which", lambda name: None if name in gone else f"/bin/{name}")
    monkeypatch.setattr(needs, "_includes", lambda program, header: header not in gone)
    return gone


NUCLEO = ("hardware=nucleo_l4r5zi", "model=resnet8")
CASES = [
    ((), "avr-gcc", "avr-gcc is not installed (builds for Arduino Uno (ATmega328P, 16 MHz)): sudo "
     "apt-get install gcc-avr avr-libc binutils-avr; until=generate does without"),
    ((), "avr-objdump", "avr-objdump is not installed"),
    ((), "avr/io.h", "avr-gcc does not find avr/io.h (builds for Arduino Uno ("),
    ((), "cc", "cc is not installed (builds the native program): sudo apt-get install gcc"),
    ((), "simavr/sim_avr.h", "cc does not find simavr/sim_avr.h (runs AVR firmware): sudo apt-get "
     "install libsimavr-dev libelf-dev; target=host does without"),
    ((), "libelf.h", "cc does not find libelf.h (runs AVR firmware)"),
    (NUCLEO, "arm-none-eabi-gcc", "arm-none-eabi-gcc is not installed (builds for NUCLEO-L4R5ZI"),
    (NUCLEO, "string.h", "arm-none-eabi-gcc does not find string.h"),
    (NUCLEO, "qemu-system-arm", "qemu-system-arm is not installed (runs Cortex-M firmware): sudo "
     "apt-get install qemu-system-arm; target=host does without"),
    (("hardware=host", "model=resnet8"), "objdump", "objdump is not installed (builds for"),
    (("train=paper",), "gcc", "gcc is not installed (compiles the loops of train=paper)"),
    (("train=paper", "until=train"), "gcc", "train=quick does without"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "gone", "said"), CASES)
def test_what_lacks_is_named(
    lacking: set[str], words: tuple[str, ...], gone: str, said: str
) -> None:
    needs.check(whole(*words))
    lacking.add(gone)
    assert said in refusal(lambda: needs.check(whole(*words)))


ALL = {"avr-gcc", "cc", "avr/io.h", "simavr/sim_avr.h", "libelf.h", "gcc"}


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (("train=quick", "until=generate"), ALL),
        (("until=build",), {"simavr/sim_avr.h", "libelf.h"}),
        (("target=host",), {"simavr/sim_avr.h", "libelf.h", "qemu-system-arm"}),
        ((), {"qemu-system-arm", "arm-none-eabi-gcc"}),
        ((*NUCLEO, "until=build"), {"qemu-system-arm", "avr-gcc"}),
        (NUCLEO, {"avr-gcc", "avr/io.h", "simavr/sim_avr.h"}),
        (("train=paper", "until=fetch"), {"gcc"}),
    ],
)
def test_nothing_else_is_missed(lacking: set[str], words: tuple[str, ...], gone: set[str]) -> None:
    lacking |= gone
    needs.check(whole(*words))


@pytest.mark.ci
def test_before_the_first_stage(project: Project, tmp_path: Path) -> None:
    """A whole command, in a PATH with no compiler."""
    project.env["PATH"] = str(tmp_path / "empty")
    said = one_line(project.run())
    assert said.startswith("avr-gcc is not installed (builds for a board): ")
    assert not project.ran() and not (project.root / "outputs").exists()
    sweep = project.run("-m", "output=json", "seed=1,2")
    assert sweep.code == 1 and sweep.json["error"] == said and not project.ran()
    assert project.run("until=schedule").code == 0


@pytest.mark.parametrize(
    ("program", "header"),
    [("avr-gcc", "avr/io.h"), ("cc", "libelf.h"), ("arm-none-eabi-gcc", "string.h")],
)
def test_headers_are_looked_for_by_the_compiler(program: str, header: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    assert needs._includes(program, header)
    assert not needs._includes(program, "no/such.h")


@pytest.mark.ci
def test_the_doctor_says_what_is_missing_and_what_mends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert doctor.run() == 1
    said = capsys.readouterr().out
    boards = "arduino, arduino_mega, arduino_sd, atmega2560, atmega328p, uno"
    assert f"{boards}\n  found    nothing\n  missing  avr-gcc is not" in said
    assert "           sudo apt-get install gcc-avr avr-libc binutils-avr\n" in said
    assert said.count("qemu-system-arm is not installed") == 1, "boards that are alike, together"
    found = programs.said([sys.executable, ROOT / "run.py", "--version"])
    assert found == f"Thimble {versions.own()}\n" != "Thimble \n"


PICO = (ROOT / "conf" / "hardware" / "pico.yaml").read_text()
OF_CORE = "defaults: [/hardware/core@_here_: cortex_m4f, _self_]\nname: mine\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("mine", PICO.replace("name: pico", "name: mine"), "all facts are there and agree"),
        ("mine", PICO, "hardware.name=pico: it is the file's, mine"),
        ("mine", PICO + "sram_byte: 1\n", "unknown key hardware.sram_byte: did you mean"),
        ("mine", PICO + "flasher: rm {hex}\n", "hardware.flasher=rm {hex}: not taken from a file"),
        ("mine", PICO + "flash_bytes: 7\n", "hardware.flash_bytes=7: hardware.regions has"),
        ("mine", OF_CORE, "hardware.clock_hz is missing: docs/keys.md says"),
        ("pico", PICO, "there is a board pico already"),
        ("mine", "", "there is no such file"),
    ],
)
def test_a_boards_yaml_is_checked(
    name: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(needs, "missing", lambda _: iter(()))
    path = tmp_path / f"{name}.yaml"
    if text:
        path.write_text(text)
    code = described.check(str(path))
    assert any(
        line.startswith(f"{name}.yaml: {said}") for line in capsys.readouterr().out.splitlines()
    )
    assert code == int("all facts" not in said)
