"""``python run.py`` as a user meets it: what it prints, what it keeps, how it ends."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipeline.home import STAGES
from tests.runner.project import Project, processes_in


def test_cold_then_cached(project: Project) -> None:
    cold = project.run()
    assert cold.code == 0, cold.err
    assert project.ran() == list(STAGES)
    for stage in STAGES:
        assert re.search(rf"^  {stage} +\d", cold.out, re.M), cold.out
    assert "a stage's standard output" not in cold.out + cold.err
    assert "\x1b" not in cold.out, "colours on something that is no terminal"
    again = project.run()
    assert again.code == 0 and project.ran() == []
    assert len(re.findall(r"cached", again.out)) == len(STAGES)


def test_json_is_the_only_output(project: Project) -> None:
    result = project.run("output=json").json
    assert result["status"] == "ok" and result["pmu_bytes"] == 400 and result["fits"] is True
    folder = Path(result["run_dir"])
    assert json.loads((folder / "result.json").read_text()) == result
    params = yaml.safe_load((folder / "params.yaml").read_text())
    assert params["hardware"]["sram_bytes"] == 2048
    assert params["code"]["strategy"] == "pipeline/strategies/small.py"


@pytest.mark.parametrize("stage", ["fetch", "schedule"])
def test_until_stops_after_that_stage(project: Project, stage: str) -> None:
    result = project.run("output=json", f"until={stage}").json
    assert project.ran() == list(STAGES[: STAGES.index(stage) + 1])
    assert result["status"] == "ok" and ("pmu_bytes" in result) == (stage == "schedule")


def test_does_not_fit_is_a_result(project: Project) -> None:
    run = project.run("output=json", "strategy=naive")
    assert run.code == 3 and project.ran() == list(STAGES[:5])
    result = run.json
    assert result["status"] == "infeasible" and result["fits"] is False
    assert (result["needed_bytes"], result["available_bytes"]) == (3000, 2048)
    assert result["pmu_bytes"] == 3000 and result["where"] == "conv2" and result["advice"]
    text = project.run("hardware.sram_bytes=100")
    assert text.code == 3
    assert "SRAM needs 400 B of 100 B (conv2); try another strategy" in text.out


def test_changes_rerun_what_depends_on_them_only(project: Project) -> None:
    project.run()
    project.ran()
    for change, rerun in {
        "hardware=big": ["measure"],
        "strategy=naive": ["schedule"],
        "hardware.sram_bytes=1000": list(STAGES[4:]),
        "target.images=3": ["simulate", "measure"],
        "train.batch=9": list(STAGES[1:]),
    }.items():
        project.run(change)
        ran = project.ran()
        assert ran == rerun[: len(ran)] and ran[:1] == rerun[:1], (change, ran)


@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("stages/build.py", "build"),
        ("pipeline/strategies/small.py", "schedule"),
        ("pipeline/fake.py", "fetch"),
    ],
)
def test_edited_code_reruns_its_stages(project: Project, file: str, first: str) -> None:
    project.run()
    project.ran()
    path = project.root / file
    path.write_text(path.read_text() + "\n# a new thought\n")
    project.run()
    ran = project.ran()
    assert ran[0] == first
    if first != "fetch":  # the outputs are the same bytes: nothing after it has to run
        assert ran == [first]


def test_a_helper_of_the_users_own_strategy_is_a_dependency(project: Project) -> None:
    helper = "pipeline/strategies/helper.py"
    project.write(helper, "EXTRA = 1\n")
    small = project.root / "pipeline/strategies/small.py"
    small.write_text(
        small.read_text().replace('"Small"', "str(EXTRA)")
        + "\n\nfrom pipeline.strategies.helper import EXTRA  # noqa: E402\n"
    )
    project.run()
    project.ran()
    project.write(helper, "EXTRA = 2\n")
    project.run("until=schedule")
    assert project.ran() == ["schedule"]


def test_an_edit_while_a_stage_runs_is_not_mistaken_for_what_ran(project: Project) -> None:
    project.env["FAKE_SLEEP_train"] = "3"
    process = project.start("until=train")
    project.wait_for("train")
    path = project.root / "stages" / "train.py"
    path.write_text(path.read_text() + "\n# edited meanwhile\n")
    process.communicate()
    project.ran()
    project.run("until=train")
    assert project.ran() == ["train"], "the old result was stored under the edited code's key"


def test_a_terminal_gets_colour_and_bars(project: Project) -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "run.py", "tracking=none"],
        cwd=project.root,
        stdout=child,
        stderr=child,
        env={**os.environ, "FAKE_LOG": str(project.root / "log"), "TERM": "xterm-256color"},
    )
    os.close(child)
    shown = b""
    while True:
        try:
            shown += os.read(parent, 4096)
        except OSError:
            break
    os.close(parent)
    assert process.wait() == 0
    assert b"\x1b[" in shown and b"measure" in shown and b"Running stage" not in shown


def test_interrupt_ends_the_stage_and_says_so(project: Project) -> None:
    project.env["FAKE_SLEEP_train"] = "60"
    process = project.start("output=json", start_new_session=True)
    project.wait_for("train")
    process.send_signal(signal.SIGINT)  # run.py alone: its stage has to be ended by it
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("interrupted")
    assert "Traceback" not in err
    assert json.loads(out)["status"] == "failed"
    assert not list((project.root / "outputs").glob("*/*/weights.npz"))
    assert not processes_in(project.root)
    project.env.clear()
    assert project.run().code == 0
