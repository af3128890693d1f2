"""Configs by people who mean harm: whole commands that would run or write, and the list."""

from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from pipeline.errors import ThimbleError
from pipeline.runner import allowed
from tests import boards
from tests.runner.project import HARDWARE, Project
from tests.runner.test_mistakes import one_line
from tests.tiers import quick

CALL = {"_target_": "os.mkdir", "path": "pwned"}
"""Call that Hydra would make."""

LOGS = {"version": 1, "handlers": {"evil": {"()": "os.mkdir", "path": "pwned"}}}


def holds(hardware: Any) -> None:
    """Check the keys of a board."""
    allowed.task(OmegaConf.create({"hardware": hardware}), [])


def experiment(content: dict[str, Any]) -> str:
    """An experiment file's text."""
    return "# @package _global_\n" + yaml.safe_dump(content)


def refused(project: Project, content: dict[str, Any], *words: str) -> str:
    """The one line that a command with this experiment file ends with, before it does anything."""
    project.write("conf/experiment/evil.yaml", experiment(content))
    run = project.run("experiment=evil", *words)
    assert run.code == 1 and "Traceback" not in run.err, run.err
    assert not list(project.root.parent.rglob("*pwned*")) and not project.ran()
    assert not (project.root / "outputs").exists() and not (project.root / "multirun").exists()
    return one_line(run)


@pytest.mark.parametrize(
    ("evil", "words", "said"),
    quick(2, [
        ({"hydra": {"callbacks": {"evil": CALL}}}, "", "hydra.callbacks.evil._target_="),
        ({"hardware": {"toolchain": {"compiler": "./evil"}}}, "", "hardware.toolchain.compiler="),
        ({"hydra": {"sweeper": {"params": {"x": CALL}}}}, "", "hydra.sweeper.params.x._target_"),
        ({"hydra": {"job_logging": LOGS}}, "", "hydra.job_logging.handlers.evil."),
        ({"hydra": {"hydra_logging": LOGS}}, "--cfg job", "hydra.hydra_logging.handlers.evil."),
        ({"hydra": {"run": {"dir": "/pwned"}}}, "", "hydra.run.dir=/pwned: not taken from a file"),
    ]),
)  # fmt: skip
def test_what_a_file_does(untouched: Project, evil: dict[str, Any], words: str, said: str) -> None:
    """At each moment at which Hydra or a stage would do it; all keys are in test_reach.py."""
    assert refused(untouched, evil, "tracking=none", *words.split()).startswith(said)


@pytest.mark.ci
def test_in_a_sweep_too(untouched: Project) -> None:
    evil = {
        "hydra": {"mode": "MULTIRUN", "sweeper": {"jobs": ["+hydra.callbacks.x._target_=os.x"]}}
    }
    assert "hydra.callbacks.x._target_=os.x: not taken" in refused(untouched, evil)
    jobs = ["seed=1", "hardware.toolchain.compiler=./evil"]  # a value of its own, no option
    evil = {"hydra": {"mode": "MULTIRUN", "sweeper": {"jobs": jobs}}}
    assert "hardware.toolchain.compiler=./evil: not taken" in refused(untouched, evil)
    evil = {"hydra": {"callbacks": {"evil": CALL}}}
    assert "os.mkdir: not taken" in refused(untouched, evil, "-m", "seed=1,2")


@pytest.mark.ci
def test_what_is_typed_or_trusted_is_done(project: Project) -> None:
    folder = project.root.parent / "there"
    assert project.run(f"hydra.run.dir={folder}", "until=fetch").code == 0
    assert (folder / "result.json").is_file()
    evil = {"hydra": {"callbacks": {"mine": CALL}}}
    project.write("conf/experiment/mine.yaml", experiment(evil))
    project.env["THIMBLE_TRUST"] = "1"
    assert project.run("experiment=mine", "until=fetch").code == 0
    assert (project.root / "pwned").is_dir(), "this test would notice a callback"


OPTIONS = """
-fplugin=x -fplugin=./x.so -B. -B/tmp -wrapper -wrapper,x -specs=x --specs=x -fuse-ld=x @x -Wl,@x
-Wl,-plugin,x -Wl,--plugin=x -Wl,-T,x -Wl,-L/tmp -Wl,-o,x -Wl,--gc-sections,-plugin,x -Wa,-I/tmp
-Wp,-MD,x -Xlinker -Xassembler -T/tmp/x -I/tmp -include -imacros -L/tmp -lx -o -x -save-temps=x
-dumpdir -aux-info -fmodule-mapper=x -fdump-tree-all=x -fprofile-dir=x -fopt-info=x -DX=system(1)
-Dmemcpy(a,b,c)=system(a) -Dfree=system -DX=a.b -mmcu=../x -march=a/b -fsanitize=x --sysroot=/tmp
-isystem /tmp/x.o x.c x.a -pipe= -E -S
"""


@pytest.mark.parametrize("flag", [*OPTIONS.split(), "-DX=1 2", "-O2\n", ""])
def test_options_that_run_or_read_or_write(flag: str) -> None:
    node = {**HARDWARE, "toolchain": {"compiler": "gcc", "package": "gcc", "flags": ["-O2", flag]}}
    with pytest.raises(ThimbleError, match="not taken from a file, it reaches options"):
        holds(node)


FLASHERS = (
    "openocd -c 'exec touch pwned'",
    "openocd -f /tmp/evil.cfg",
    "openocd -f interface/../../tmp/evil.cfg",
    "openocd -f interface/stlink.cfg -c 'program {{{hex}}} verify; exec id'",
    "avrdude -C /tmp/evil.conf -p {part}",
    "avrdude -p {part} -U flash:r:/etc/passwd:r",
    "avrdude -p {part.__class__}",
    "pyocd --script evil.py load {hex}",
    "/tmp/avrdude -p {part}",
    "./avrdude",
    "avrdude 'unpaired",
    "st-flash write {hex} /etc/passwd",
)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        *(({"flasher": each}, "hardware.flasher=") for each in FLASHERS),
        ({"toolchain": {"compiler": "sh"}}, "hardware.toolchain.compiler=sh"),
        ({"toolchain": {"objcopy": "/tmp/objcopy"}}, "hardware.toolchain.objcopy=/tmp/objcopy"),
        (
            {"part": "../x", "toolchain": {"flags": ["-mmcu=${hardware.part}"]}},
            "hardware.part=../x",
        ),
    ],
)
def test_programs_that_do_something_else(node: dict[str, Any], said: str) -> None:
    with pytest.raises(ThimbleError) as caught:
        holds({**HARDWARE, **node})
    assert str(caught.value).startswith(said) and ": not taken" in str(caught.value)


def test_every_board_and_more_that_people_write_is_known() -> None:
    for name in boards.NAMES:
        holds(boards.node(name))
    flags = ["-march=armv7e-m+fp", "-Og", "-fno-exceptions", "-DARM_MATH_CM4", "-Wl,--relax"]
    for compiler in ("gcc", "clang", "gcc-12", "arm-none-eabi-gcc", "avr-gcc-13.2.0", "cc"):
        tools = {"compiler": compiler, "package": "", "flags": flags}
        holds({**HARDWARE, "toolchain": tools})
    for flasher in ("st-flash --reset --format ihex write {hex}", "pyocd load -t {part} {hex}"):
        holds({**HARDWARE, "flasher": flasher})
