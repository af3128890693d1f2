"""Config files by people who mean harm: whole commands, each with a file that would run or write
something, and the list itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from pipeline.errors import ThimbleError
from pipeline.runner import allowed, schema
from tests import boards
from tests.runner.project import HARDWARE, Project
from tests.runner.test_mistakes import one_line
from tests.tiers import quick

CALL = {"_target_": "os.mkdir", "path": "pwned"}
"""What Hydra would call."""

LOGS = {"version": 1, "handlers": {"evil": {"()": "os.mkdir", "path": "pwned"}}}
FILE = {
    "version": 1,
    "handlers": {"evil": {"class": "logging.FileHandler", "filename": "pwned"}},
    "root": {"handlers": ["evil"]},
}
HYDRA: dict[str, tuple[dict[str, Any], str]] = {
    "a callback": ({"callbacks": {"evil": CALL}}, "hydra.callbacks.evil._target_=os.mkdir: not"),
    "our callback's place": ({"callbacks": {"check": CALL}}, "hydra.callbacks.check"),
    "a launcher": ({"launcher": CALL}, "hydra.launcher._target_=os.mkdir: not taken"),
    "a sweeper's values": ({"sweeper": {"params": {"x": CALL}}}, "hydra.sweeper.params.x._target_"),
    "a sweeper": ({"sweeper": CALL}, "hydra.sweeper._target_=os.mkdir: not taken"),
    "a logger": ({"job_logging": LOGS}, "hydra.job_logging.handlers.evil."),
    "Hydra's logger": ({"hydra_logging": LOGS}, "hydra.hydra_logging.handlers.evil."),
    "a log file": ({"job_logging": FILE}, "hydra.job_logging."),
    "the environment": (
        {"job": {"env_set": {"PATH": "/evil"}}},
        "hydra.job.env_set.PATH=/evil: not",
    ),
    "a subfolder": ({"output_subdir": "../../pwned"}, "hydra.output_subdir=../../pwned: not taken"),
    "a run's folder": ({"run": {"dir": "/pwned"}}, "hydra.run.dir=/pwned: not taken from a file"),
    "a way out": ({"run": {"dir": "outputs/../pwned"}}, "hydra.run.dir=outputs/../pwned: not"),
    "a sweep's folder": ({"sweep": {"dir": "pwned"}}, "hydra.sweep.dir=pwned: not taken"),
    "a job's folder": ({"sweep": {"subdir": "../../pwned"}}, "hydra.sweep.subdir=../../pwned: not"),
    "a job's script": ({"launcher": {"setup": ["touch pwned"]}}, "hydra.launcher.setup=touch"),
    "a script's head": ({"launcher": {"name": "a\ntouch pwned"}}, "hydra.launcher.name=a"),
    "what it refers to": ({"launcher": {"name": "${.x}", "x": "a\nb"}}, "hydra.launcher.name=a b"),
    "a cluster": (
        {"launcher": {"ray": {"init": {"address": "evil:1"}}}},
        "hydra.launcher.ray.init",
    ),
}


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


@pytest.mark.parametrize("name", quick(["a callback", "a way out"], HYDRA, ci=8))
def test_what_a_file_has_hydra_do(untouched: Project, name: str) -> None:
    node, said = HYDRA[name]
    assert refused(untouched, {"hydra": node}).startswith(said)


@pytest.mark.parametrize("name", HYDRA)
def test_what_hydra_composes_is_checked(untouched: Project, name: str) -> None:
    """What ``guard`` does in a command, without the command."""
    node, said = HYDRA[name]
    untouched.write("conf/experiment/evil.yaml", experiment({"hydra": node}))
    words = ["experiment=evil"]
    config = schema.composed(*words, hydra=True, root=untouched.root)
    with pytest.raises(ThimbleError) as caught:
        allowed.check(config, words)
    assert str(caught.value).startswith(said)


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


def test_not_even_to_show_the_config(untouched: Project) -> None:
    evil = {"hydra": {"hydra_logging": LOGS}}
    assert "hydra.hydra_logging.handlers.evil." in refused(
        untouched, evil, "tracking=none", "--cfg", "job"
    )


@pytest.mark.parametrize(
    ("hardware", "said"),
    quick(
        1,
        [
            (
                {"toolchain": {"compiler": "./evil"}},
                "hardware.toolchain.compiler=./evil: not taken",
            ),
            ({"toolchain": {"compiler": "sh"}}, "hardware.toolchain.compiler=sh: not taken"),
            ({"toolchain": {"objcopy": "/tmp/objcopy"}}, "hardware.toolchain.objcopy=/tmp/objcopy"),
            (
                {"toolchain": {"flags": ["-fplugin=./evil.so"]}},
                "hardware.toolchain.flags=-fplugin=./evil.so: not taken",
            ),
            (
                {"part": "../x", "toolchain": {"flags": ["-mmcu=${hardware.part}"]}},
                "hardware.part=../x: not taken",
            ),
            ({"flasher": "sh -c 'touch pwned'"}, "hardware.flasher=sh -c 'touch pwned': not taken"),
        ],
    ),
)
def test_what_a_file_has_the_stages_run(
    untouched: Project, hardware: dict[str, Any], said: str
) -> None:
    assert said in refused(untouched, {"hardware": hardware})


@pytest.mark.ci
def test_programs_come_from_no_cache_that_a_file_names(project: Project) -> None:
    said = refused(project, {"cache": {"remote": "ssh://evil/cache"}})
    assert said.startswith("cache.remote=ssh://evil/cache: not taken from a file")
    remote = project.root.parent / "mine"
    assert project.run(f"cache.remote={remote}", "until=fetch").code == 0 and remote.is_dir()


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


def test_a_folder_of_ones_own_is_not_replaced(project: Project) -> None:
    mine = project.root.parent / "mine" / "generated"
    mine.mkdir(parents=True)
    (mine / "work.py").write_text("years of it")
    said = one_line(project.run(f"hydra.run.dir={mine.parent}"))
    assert "is no run's folder and has 'generated' of its own" in said
    assert (mine / "work.py").read_text() == "years of it"


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


@pytest.mark.parametrize(
    "flasher",
    [
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
    ],
)
def test_flashers_that_do_something_else(flasher: str) -> None:
    with pytest.raises(ThimbleError, match=r"hardware\.flasher=.*: not taken"):
        holds({**HARDWARE, "flasher": flasher})


def test_every_board_and_more_that_people_write_is_known() -> None:
    for name in boards.NAMES:
        holds(boards.node(name))
    flags = ["-march=armv7e-m+fp", "-Og", "-fno-exceptions", "-DARM_MATH_CM4", "-Wl,--relax"]
    for compiler in ("gcc", "clang", "gcc-12", "arm-none-eabi-gcc", "avr-gcc-13.2.0", "cc"):
        tools = {"compiler": compiler, "package": "", "flags": flags}
        holds({**HARDWARE, "toolchain": tools})
    for flasher in ("st-flash --reset --format ihex write {hex}", "pyocd load -t {part} {hex}"):
        holds({**HARDWARE, "flasher": flasher})


@pytest.mark.ci
def test_a_recorded_run_is_held_to_the_list(project: Project) -> None:
    folder = Path(project.run("output=json", "until=fetch").json["run_dir"])
    params = yaml.safe_load((folder / "params.yaml").read_text())
    params["hardware"]["toolchain"]["compiler"] = "./evil"
    (folder / "params.yaml").write_text(yaml.safe_dump(params))
    said = one_line(project.run(f"replay={folder}"))
    assert said.startswith("hardware.toolchain.compiler=./evil: not taken")
