"""``python run.py`` as a user meets it: what it prints, what it keeps, how it ends."""

import json
import re
from pathlib import Path

import pytest
import yaml

from pipeline.home import STAGES
from tests.runner.project import HARDWARE, Project


def test_cold_then_cached(project: Project) -> None:
    cold = project.run(real=True)
    assert cold.code == 0, cold.err
    assert project.ran() == list(STAGES)
    for stage in STAGES:
        assert re.search(rf"^  {stage} +\d", cold.out, re.M), cold.out
    assert "a stage's standard output" not in cold.out + cold.err
    assert "\x1b" not in cold.out, "colours on something that is no terminal"
    again = project.run()
    assert again.code == 0 and project.ran() == []
    assert len(re.findall(r"cached", again.out)) == len(STAGES)
    result = project.run("output=json").json
    assert result["status"] == "ok" and result["pmu_bytes"] == 400 and result["fits"] is True
    folder = Path(result["run_dir"])
    assert json.loads((folder / "result.json").read_text()) == result
    params = yaml.safe_load((folder / "params.yaml").read_text())
    assert params["hardware"]["sram_bytes"] == 2048
    files = json.loads((folder / "code.json").read_text())["schedule"]["files"]
    assert {"pipeline/strategies/small.py", "stages/schedule.py"} <= files.keys()


@pytest.mark.slow
def test_a_folder_used_again_shows_this_runs_results_only(project: Project) -> None:
    again = ("output=json", "hydra.run.dir=again")
    assert project.run(*again, "strategy=naive").code == 3
    corrected = project.run(*again, "strategy=herringbone")
    assert corrected.code == 0 and set(corrected.json["stages"]) == set(STAGES)
    assert corrected.json["cycles"] == 5
    planned = project.run(*again, "until=schedule").json
    assert planned["pmu_bytes"] == 400 and "cycles" not in planned
    folder = project.root / "again"
    assert not (folder / "metrics.json").exists() and not (folder / "generated").exists()
    assert project.run(*again, "strategy=naive").json["status"] == "infeasible"
    assert set(yaml.safe_load((folder / "dvc.lock").read_text())["stages"]) == set(STAGES[:5])


@pytest.mark.ci
def test_what_a_run_did_not_make_stays(project: Project) -> None:
    project.write("mine/metrics.txt", "{}")
    assert project.run("hydra.run.dir=mine", "until=fetch").code == 0
    assert (project.root / "mine" / "metrics.txt").exists()
    assert [path.name for path in (project.root / "mine" / ".dvc").iterdir()] == ["config"]
    project.write("repository/.dvc/config", "[core]\n    remote = lab\n")
    project.write("repository/generated/model.c", "")
    run = project.run("hydra.run.dir=repository")
    assert run.code == 1 and "is no run's folder and has 'generated' of its own" in run.err
    run = project.run("hydra.run.dir=.")
    assert run.code == 1 and "hydra.run.dir is the project itself" in run.err
    assert (project.root / "stages" / "fetch.py").exists()


@pytest.mark.ci
def test_a_wrong_firmware_fails_and_a_warning_is_shown_once(project: Project) -> None:
    project.env["FAKE_ACT"] = "measure:wrong"
    run = project.run()
    assert run.code == 1
    assert run.err == "3 of 100 images differ\n"
    assert "10,000 images, 3 differ from the reference" in run.out
    run = project.run("output=json")
    assert run.code == 1 and run.json["status"] == "failed", "cached, it is as wrong"
    assert run.json["error"] == "3 of 100 images differ" and run.json["mismatches_host"] == 3
    project.env["FAKE_ACT"] = "measure:chance"
    line = "accuracy 10.00% is no better than chance"
    for _ in ("made", "cached"):
        run = project.run("output=json", "hardware=big")
        assert run.code == 0 and run.json["warnings"] == [line] and run.err.count(line) == 1


@pytest.mark.ci
def test_flashing_is_never_cached(project: Project) -> None:
    project.write("conf/target/flash.yaml", "name: flash\nimages: 0\ndry_run: true\n")
    board = yaml.safe_dump({**HARDWARE, "name": "arduino", "flasher": "avrdude"})
    project.write("conf/hardware/arduino.yaml", board)
    for ran in (list(STAGES), ["simulate"]):
        run = project.run("output=json", "target=flash")
        assert run.code == 0, run.err
        assert project.ran() == ran
        assert run.json["stages"]["simulate"]["cached"] is False


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


@pytest.mark.ci
def test_changes_and_edits_rerun_what_depends_on_them_only(project: Project) -> None:
    project.run()
    project.ran()
    for changes, rerun in {
        ("hardware=big",): ["prove", "measure"],
        ("strategy=naive",): ["schedule"],
        ("hardware.sram_bytes=1000", "until=generate"): ["schedule", "generate"],
        ("target.images=3",): ["simulate", "prove", "measure"],
        ("train.batch=9", "until=prune"): ["train", "prune"],
    }.items():
        project.run(*changes)
        assert project.ran() == rerun, changes
    for file, first, last in (
        ("stages/build.py", "build", "build"),
        ("pipeline/strategies/small.py", "schedule", "build"),
        ("pipeline/fake.py", "fetch", "train"),
    ):
        path = project.root / file
        path.write_text(path.read_text() + "\n# a new thought\n")
        project.run(f"until={last}")
        ran = project.ran()
        assert ran[0] == first
        if first != "fetch":  # the outputs are the same bytes: nothing after it has to run
            assert ran == [first]


@pytest.mark.ci
def test_an_edit_while_a_stage_runs_is_not_mistaken_for_what_ran(project: Project) -> None:
    project.hold("train")
    process = project.start("until=train")
    project.wait_for("train")
    path = project.root / "stages" / "train.py"
    path.write_text(path.read_text() + "\n# edited meanwhile\n")
    project.release("train")
    _, err = process.communicate()
    assert process.returncode == 1 and err.count("\n") == 1
    assert err.startswith("train: stages/train.py was edited while it ran: nothing is kept")
    project.ran()
    project.run("until=train")
    assert project.ran() == ["train"], "the old result was stored under the edited code's key"
    path.write_text(path.read_text().removesuffix("\n# edited meanwhile\n"))
    project.run("until=train")
    assert project.ran() == ["train"], "the old result was stored under the old code's key"
