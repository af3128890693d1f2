"""What a run says at its end, what runs and sweeps are called, and how a sweep is seen to go."""

import codecs
import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipeline.artifacts import write_json
from pipeline.runner import progress, titles
from pipeline.runner.live import View, kind
from pipeline.runner.screen import MOST_LAYERS, Screen, infeasible, summary
from pipeline.runner.table import show
from tests.runner.project import Project, clean_environment

RESULT = {
    "latency_us": 26_157.6,
    "latency_max_us": 28_323.6,
    "layers": [
        {"layer": "pooled", "macs": 0, "cycles": 73_000},
        {"layer": "conv1", "macs": 10, "cycles": 93, "cycles_per_mac": 9.3},
        {"layer": "conv2", "macs": 10, "cycles": 44, "cycles_per_mac": 4.4},
    ],
}


def test_latency_says_how_it_depends_on_the_image() -> None:
    """A modelled one has its error beside it."""
    found = dict(summary(RESULT))
    assert found["latency"] == "26.2 ms after the last input byte, 28.3 ms for the slowest image"
    constant = dict(summary({**RESULT, "latency_max_us": 26_157.6}))
    assert constant["latency"] == "26.2 ms after the last input byte"
    band = {"latency_us": 95_400.0, "latency_low_us": 93_820.0, "latency_high_us": 96_980.0}
    said = "95.4 ms after the last input byte (modelled, {}, 93.8 ms to 97.0 ms)"
    assert dict(summary({**band, "latency_error_pct": 5.0}))["latency"] == said.format("±5 %")
    assert dict(summary(band))["latency"] == said.format("unvalidated")


def test_cycles_per_mac_of_the_layers_that_have_macs() -> None:
    """List few. A result may hold more than numbers: with a card, how long it is in each state."""
    assert dict(summary({**RESULT, "states_us": {"both": 1.0}})) == dict(summary(RESULT))
    assert dict(summary(RESULT))["cycles/MAC"] == "conv1 9.3, conv2 4.4"
    assert "cycles/MAC" not in dict(summary({"latency_us": 1.0}))
    layers = [{"layer": f"conv{n}", "cycles_per_mac": 1.0 + n} for n in range(MOST_LAYERS + 1)]
    assert "cycles/MAC" not in dict(summary({"layers": layers}))
    assert "conv5 6.0" in dict(summary({"layers": layers[:-1]}))["cycles/MAC"]


def test_accuracy_of_random_weights_and_in_float(capsys: pytest.CaptureFixture[str]) -> None:
    known = {"accuracy_int": 0.87, "accuracy_float": 0.875, "agreement_float": 0.999}
    found = dict(summary({**known, "images_float": 10_000}))
    assert found["accuracy"] == "87.00 % on the full test set, integer (87.50 % in float)"
    assert found["agreement"] == "99.90 % of 10,000 images have the float network's label"
    assert "agreement" not in dict(summary({"accuracy_int": 0.87}))
    found = dict(summary({"accuracy_int": 0.1, "random_weights": True}))
    assert "random weights" in found["accuracy"] and "%" not in found["accuracy"]
    assert "accuracy" not in dict(summary({"random_weights": True}))  # without data
    job = {"status": "ok", "accuracy_int": 0.1, "run_dir": "x", "overrides": []}
    for random in (False, True):
        show({"jobs": [{**job, "random_weights": random}], "run_dir": "x"})
        assert ("10.00 %" in capsys.readouterr().out) != random


MEMORIES = [
    {"name": "sram", "needed_bytes": 18_048, "available_bytes": 655_360},
    {"name": "flash", "needed_bytes": 24_368, "available_bytes": 2_097_152},
]


def test_a_plan_and_firmware_have_bars(capsys: pytest.CaptureFixture[str]) -> None:
    """Draw a bar for each memory, until there is firmware to be measured."""
    result = {"status": "ok", "fits": True, "memories": MEMORIES, "run_dir": "x"}
    Screen(False).result(result)
    sram, flash, fits = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"  SRAM       █░{29} 18,048 of 655,360 B \(3 %\)", sram)
    assert flash.endswith(" 24,368 of 2,097,152 B (1 %)") and fits.startswith(
        "  fits       as plan"
    )
    limits = {"sram_limit_bytes": 1 << 30, "flash_limit_bytes": 1 << 30}
    assert "fits" not in dict(summary({**result, "flash_bytes": 9}))
    assert "fits" not in dict(summary({**result, "fits": False}))
    Screen(False).result({**result, "flash_bytes": 9, **limits})
    assert not capsys.readouterr().out
    Screen(False).result({"status": "ok", "run_dir": "x", "memories": [
        {**each, "available_bytes": 1 << 30} for each in MEMORIES]})  # fmt: skip
    assert not capsys.readouterr().out
    command = f"openocd -c 'program {{{'/folder' * 30}/firmware.hex}} verify reset exit'"
    flasher = {"command": command, "writes": "9 B", "dry_run": True}
    result = {"status": "ok", "sram_bytes": 99, "flash_bytes": 7_000, "run_dir": "x"}
    Screen(False).result({**result, "sram_limit_bytes": 1 << 30, "flash_limit_bytes": 1 << 32})
    assert "█" not in capsys.readouterr().out
    limits = {"sram_limit_bytes": 2048, "flash_limit_bytes": 32_256}
    Screen(False).result({**result, **limits, "flasher": flasher})
    out = capsys.readouterr().out
    assert "99 of 2,048 B (5 %)" in out and "7,000 of 32,256 B (22 %)" in out
    assert f"would run  {command}\n" in out, "it can be copied"


def test_a_limit_that_is_not_kept_is_in_its_own_unit() -> None:
    said = {"resource": "prune.macs", "needed_bytes": 900, "available_bytes": 500, "unit": "MACs"}
    line = infeasible({**said, "where": "as far as it goes", "advice": "try more"})
    assert (
        line == "does not fit: prune.macs needs 900 MACs of 500 MACs (as far as it goes); try more"
    )


CONFIG: dict[str, Any] = {
    "model": {"name": "mnist_2kb"},
    "hardware": {"name": "arduino"},
    "strategy": {"name": "herringbone"},
}
RUN = "mnist_2kb · arduino · herringbone"


@pytest.mark.parametrize(
    ("jobs", "called"),
    [
        ([["strategy=naive"], ["strategy=herringbone"]], RUN),
        ([["seed=1", "train=quick"], ["seed=2", "train=quick"]], f"{RUN} · seed=2"),
        ([["model=tflite", "model.path=a"], ["model=tflite", "model.path=b"]], RUN),
        ([["model.width=1"], ["model.width=2"]], f"{RUN} · model.width=2"),
        ([["seed=1"], ["seed=1"]], RUN),
    ],
)
def test_a_job_says_what_its_name_does_not(jobs: list[list[str]], called: str) -> None:
    assert titles.of_job(CONFIG, jobs, 1) == called and titles.of_run(CONFIG) == RUN


LINES = [["strategy=naive"], ["strategy=replace"], ["strategy=herringbone"]]
SEEDS = [["strategy=naive", "seed=1"], ["strategy=naive", "seed=2"]]


@pytest.mark.parametrize(
    ("choices", "typed", "jobs", "called"),
    [
        ({}, ["strategy=naive,replace", "output=json"], LINES[:2],
         "strategy=naive,replace · 2 jobs"),
        ({"experiment": "gural_figure1", "sweep": None}, ["experiment=gural_figure1"], LINES,
         "gural_figure1 · 3 jobs"),
        ({"sweep": "strategies"}, ["sweep=strategies", "seed=range(1,3)"], SEEDS,
         "strategies · seed=range(1,3) · 2 jobs"),
        ({}, ["seed=1"], [["seed=1"]], "sweep · 1 job"),
    ],
)  # fmt: skip
def test_a_sweep_is_called_by_what_was_swept(
    choices: dict[str, Any], typed: list[str], jobs: list[list[str]], called: str
) -> None:
    assert titles.of_sweep(choices, typed, jobs) == called


def test_a_long_sweep_has_a_name_that_fits_a_line() -> None:
    jobs = [[f"seed={number}"] for number in range(300)]
    typed = "seed=" + ",".join(map(str, range(300)))
    called = titles.of_sweep({}, [typed], jobs)
    assert called.endswith("… · 300 jobs") and len(called) <= titles.LONGEST + 15


RAN = {"train": {"cached": True, "seconds": 0.1}, "measure": {"cached": False, "seconds": 1.0}}
CACHED = {"train": {"cached": True, "seconds": 0.1}}


def ended(folder: Path, job: int, begin: float, **result: Any) -> None:
    place = folder / str(job)
    write_json(place / "result.json", {"run_dir": str(place), **result})
    running(folder, job, begin)


def running(folder: Path, job: int, begin: float, stage: str = "train") -> None:
    note = {"folder": str(folder / str(job)), "begin": begin, "stage": stage}
    write_json(folder / progress.JOBS / f"{job}.json", note)


def test_counting(tmp_path: Path) -> None:
    """Elsewhere than on a terminal: a line for each job that has ended, and one at the end."""
    begun = time.time()
    screen = tmp_path / "screen"
    with screen.open("w") as stream, View(tmp_path, Console(file=stream, width=200)) as view:
        view.expect({n: f"seed={n}" for n in range(3)}, total=10)
        assert "left" not in view.line(), "nobody can know yet"
        running(tmp_path, 1, begun)
        running(tmp_path, 2, begun)
        ended(tmp_path, 0, begun, status="ok", stages=CACHED)
        view.refresh()
        progress.lost(tmp_path, 3, progress.KILLED)
        ended(tmp_path, 1, begun, status="ok", stages=RAN)
        view.refresh()
        view.begin -= 100  # a job that runs took as long; 8 are left
        assert view.line() == (
            "2 of 10 jobs: 1 running, 1 done, 1 cached, 0 infeasible, 0 failed; about 14 min left"
        ), "nobody has named job 3"
        view.expect({3: "seed=3"})
        view.refresh()
    text = screen.read_text()
    assert text.startswith("10 jobs in ") and "seed=0  cached    (1 of 10, 2 running; ab" in text
    assert f"seed=3  failed  {progress.KILLED}" in text
    assert text.splitlines()[-1].startswith("3 of 10 jobs: 1 running, 1 done, 1 cached, 0 inf")


def test_the_result_counts_and_not_the_launchers_guess(tmp_path: Path) -> None:
    """A process killed after it had written its result has a result; half a note is no news."""
    assert kind({"status": "ok", "stages": RAN}) == "done"
    assert kind({"status": "ok", "stages": CACHED}) == "cached"
    ended(tmp_path, 0, 1.0, status="ok", stages=RAN, pmu_bytes=430.5)
    progress.lost(tmp_path, 0, progress.KILLED)
    (tmp_path / progress.JOBS / "1.json").write_text('{"folder": ')
    (note,) = progress.read(tmp_path).values()
    result = progress.result(note)
    assert result is not None and result["status"] == "ok" and result["pmu_bytes"] == 430.5


def test_a_terminal_shows_running_jobs(tmp_path: Path) -> None:
    with (tmp_path / "screen").open("w") as stream:
        console = Console(file=stream, force_terminal=True, width=100, color_system=None)
        with View(tmp_path, console) as view:
            view.expect({n: f"seed={n}" for n in range(20)})
            for job in range(1, 15):
                running(tmp_path, job, 1e9)
            ended(tmp_path, 0, 1e9, status="infeasible", resource="SRAM", needed_bytes=2337,
                  available_bytes=2048)  # fmt: skip
            view.refresh()
    text = (tmp_path / "screen").read_text()
    assert "seed=0  infeasible  SRAM needs 2,337 B of 2,048 B" in text
    assert re.search(r"  12  seed=12  train  \d+ m", text) and "seed=13" not in text
    assert "and 2 more" in text and "1 of 20 jobs: 14 running, 0 done, 0 cached, 1 inf" in text


RUNNING = r"0  strategy=herringbone\s+schedule\s+\d"
COUNTED = "0 of 2 jobs: 2 running, 0 done, 0 cached, 0 infeasible, 0 failed"


def typed(project: Project, *words: str, columns: int = 80) -> Iterator[tuple[str, str]]:
    """Yield what ``run.py`` has written to a terminal so far, bit by bit until it ends well; last
    of all with its standard output, if that is JSON and so goes elsewhere."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {**clean_environment(), "FAKE_LOG": str(project.root / "log"), "TERM": "xterm-256color"}
    decoder, screen = codecs.getincrementaldecoder("utf-8")(), ""
    with subprocess.Popen(
        [sys.executable, "run.py", "tracking=none", *words], cwd=project.root, env=env,
        stdin=follower, stderr=follower,
        stdout=subprocess.PIPE if "output=json" in words else follower,
    ) as process:  # fmt: skip
        os.close(follower)
        with contextlib.suppress(OSError):  # Linux: nobody has the other end any more
            while part := os.read(leader, 65536):
                screen += decoder.decode(part)
                yield screen, ""
        os.close(leader)
        out = process.stdout.read().decode() if process.stdout else ""
    assert process.returncode == 0, screen
    yield screen, out


@pytest.mark.ci
def test_the_live_view_of_a_real_sweep(project: Project) -> None:
    """In a terminal of 110 columns; JSON is still the only line of standard output."""
    words = ("-m", "strategy=herringbone,naive", "hydra/launcher=local", "output=json")
    project.hold("schedule")
    held = True
    for told in typed(project, *words, columns=110):
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told[0])
        if held and re.search(RUNNING, text) and COUNTED in text:
            project.release("schedule")
            held = False
    assert not held, "a running job's line"
    assert "strategy=naive  infeasible  SRAM needs 3,000 B of 2,048 B" in text
    assert "2 of 2 jobs: 0 running, 1 done, 0 cached, 1 infeasible, 0 failed" in text
    assert told[1].count("\n") == 1 and len(json.loads(told[1])["jobs"]) == 2


@pytest.mark.ci
def test_a_terminal_gets_colour_and_bars(project: Project) -> None:
    *_, (shown, _) = typed(project, "until=train")
    assert "\x1b[" in shown and "train" in shown and "Running stage" not in shown
