"""Sweeps: one trained network, a row for each job, one JSON object."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from pipeline.home import STAGES
from tests.runner.project import Project, processes_in


def test_jobs_share_the_trained_network(project: Project) -> None:
    run = project.run("-m", "output=json", "strategy=naive,herringbone", "hardware=arduino,big")
    assert run.code == 0, run.err
    result = run.json
    assert result["status"] == "ok"
    assert [(j["strategy"], j["hardware"]) for j in result["jobs"]] == [
        *(("naive", "arduino"), ("naive", "big")),
        *(("herringbone", "arduino"), ("herringbone", "big")),
    ]
    assert [j["status"] for j in result["jobs"]] == ["infeasible"] * 2 + ["ok"] * 2
    ran = project.ran()
    assert ran.count("train") == 1 and ran.count("schedule") == 2 and ran.count("measure") == 2


def test_sweep_file_prints_a_table(project: Project) -> None:
    for name in ("replace", "single_transpose"):
        source = (project.root / "conf/strategy/herringbone.yaml").read_text()
        project.write(f"conf/strategy/{name}.yaml", source.replace("herringbone", name))
    run = project.run("sweep=strategies")
    assert run.code == 0, run.err
    for name in ("naive", "replace", "single_transpose", "herringbone"):
        assert f"strategy={name}" in run.out
    assert run.out.count("infeasible") >= 1


def test_a_failed_job_is_a_row_and_the_others_go_on(project: Project) -> None:
    run = project.run(
        "-m", "output=json", "strategy._target_=os.system,pipeline.strategies.big.Big"
    )
    assert run.code == 1
    assert [job["status"] for job in run.json["jobs"]] == ["failed", "infeasible"]
    assert "refused" in run.json["jobs"][0]["error"]


def test_concurrent_cold_runs_train_once(project: Project) -> None:
    project.env["FAKE_SLEEP_train"] = "0.5"
    processes = [project.start("output=json", f"target.images={n}") for n in range(6)]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    ran = project.ran()
    assert [ran.count(stage) for stage in STAGES] == [1] * 7 + [6] * 2  # images differ
    weights = list((project.root / "outputs").glob("*/*/weights.npz"))
    assert len(weights) == 6 and len({path.read_bytes() for path in weights}) == 1


def test_the_same_command_twice_at_once(project: Project) -> None:
    with project.start() as first, project.start() as second:
        assert [p.wait(timeout=120) for p in (first, second)] == [0, 0]
    assert sorted(project.ran()) == sorted(STAGES)


def test_a_killed_run_leaves_its_lock_and_no_stage_behind(project: Project) -> None:
    project.env["FAKE_SLEEP_train"] = "20"
    with project.start() as process:
        project.wait_for("train")
        os.kill(process.pid, signal.SIGKILL)
    project.env.clear()
    begin = time.monotonic()
    assert project.run().code == 0
    assert time.monotonic() - begin < 15, "it waited for a lock that nobody holds"
    deadline = time.monotonic() + 5
    while processes_in(project.root) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_in(project.root), "a stage outlived its run"


def test_an_interrupted_sweep_says_so_as_a_run_does(project: Project) -> None:
    project.env["FAKE_SLEEP_train"] = "60"
    process = project.start("-m", "output=json", "seed=1,2", start_new_session=True)
    project.wait_for("train")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and err.splitlines()[-1].startswith("interrupted")
    for result in (json.loads(out), *json.loads(out)["jobs"]):
        assert (result["status"], result["error"]) == ("failed", "interrupted")
        assert Path(result["run_dir"]).is_dir()


def test_jobs_side_by_side(project: Project) -> None:
    project.env["FAKE_SLEEP_measure"] = "0.3"
    images = "target.images=1,2,3"
    run = project.run("-m", "output=json", images, "hydra/launcher=local")
    assert run.code == 0, run.err
    assert [job["status"] for job in run.json["jobs"]] == ["ok"] * 3
    ran = project.ran()
    assert ran.count("train") == 1 and ran.count("measure") == 3
