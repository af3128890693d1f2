"""Sweeps on clusters: submitit and Ray, each in its local mode."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from pipeline.runner.progress import KILLED
from pipeline.runner.sweep import NOT_STARTED
from tests.runner.project import Project

SWEEP = ("-m", "output=json", "until=train", "train.batch=3,4")


@pytest.mark.ci
def test_submitit(project: Project) -> None:
    """Two jobs fetch once; after that all is cached."""
    run = project.run(*SWEEP, "hydra/launcher=submitit_local")
    assert run.code == 0, run.err
    assert [job["status"] for job in run.json["jobs"]] == ["ok"] * 2
    assert "2 of 2 jobs" in run.err and "train.batch=4  done" in run.err
    folders = [Path(job["run_dir"]) for job in run.json["jobs"]]
    assert [folder.parent for folder in folders] == [Path(run.json["run_dir"])] * 2
    assert len({(folder / "weights.npz").read_bytes() for folder in folders}) == 2
    ran = project.ran()
    assert ran.count("fetch") == 1 and ran.count("train") == 2
    again = project.run(*SWEEP, "hydra/launcher=submitit_local")
    assert again.code == 0 and not project.ran() and "train.batch=4  cached" in again.err


@pytest.mark.slow
def test_a_killed_slurm_job_is_a_row(project: Project) -> None:
    """The worker's process is killed, as SLURM does when it takes too much memory."""
    project.hold("train")
    process = project.start(*SWEEP, "hydra/launcher=submitit_local")
    project.worker(1, "train").kill()
    project.release("train")
    out, err = process.communicate()
    jobs = json.loads(out)["jobs"]
    assert process.returncode == 1 and [job["status"] for job in jobs] == ["ok", "failed"]
    assert jobs[1]["error"].startswith(f"{KILLED} (job ") and "Traceback" not in err
    (log,) = [word for word in jobs[1]["error"].strip(")").split() if word.endswith(".err")]
    assert Path(log).is_file()


@pytest.mark.ci
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hydra/launcher=submitit_local", "+hydra.launcher.cpus=3"), "cpus"),
        (("hydra/launcher=slurm",), "srun"),
        (("hydra/launcher=ray", "hydra.launcher.ray.init.address=127.0.0.1:1"), "ray start --head"),
    ],
)
def test_no_cluster_or_a_wrong_option_is_one_line(
    untouched: Project, words: tuple[str, ...], said: str
) -> None:
    run = untouched.run(*SWEEP, *words)
    assert run.code == 1 and said in run.json["error"] and "Traceback" not in run.err


@pytest.mark.ci
def test_what_slurm_is_asked_for(project: Project, tmp_path: Path) -> None:
    """A stand-in for SLURM's command keeps the script and refuses it."""
    tools = tmp_path / "tools"
    refuses = f"cp $1 {tmp_path}; echo no such part >&2; exit 1"
    for name, text in (("srun", "exit 0"), ("sbatch", refuses)):
        project.write(str(tools / name), f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    project.env["PATH"] = f"{tools}:{os.environ['PATH']}"
    run = project.run(
        *SWEEP, "hydra/launcher=slurm", "hydra.launcher.slurm_partition=cpu", "threads=3"
    )
    assert run.code == 1 and "no such part" in run.json["error"] and "Traceback" not in run.err
    assert [job["status"] for job in run.json["jobs"]] == [NOT_STARTED] * 2
    (script,) = (path for path in tmp_path.iterdir() if path.suffix == ".sh")
    asked = script.read_text()
    for option in ("cpus-per-task=3", "partition=cpu", "array=0-1%2", "time=240", "mem=4GB"):
        assert f"#SBATCH --{option}\n" in asked, asked


@pytest.mark.slow
def test_ray(project: Project, request: pytest.FixtureRequest) -> None:
    """The process of one of two jobs is killed; the same command runs what is missing."""
    pytest.importorskip("ray", reason="Ray has no wheel for this Python")
    project.env["RAY_TMPDIR"] = folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # for sockets
    request.addfinalizer(lambda: shutil.rmtree(folder, ignore_errors=True))
    init = "hydra.launcher.ray.init"
    given = (
        f"{init}.address=local",
        f"+{init}.num_cpus=2",
        f"+{init}.object_store_memory=80000000",
    )
    words = (*SWEEP, "hydra/launcher=ray", *given)
    project.hold("train")
    process = project.start(*words)
    project.worker(0, "train").kill()
    project.release("train")
    out, err = process.communicate()
    jobs = json.loads(out)["jobs"]
    assert process.returncode == 1 and [job["status"] for job in jobs] == ["failed", "ok"]
    assert jobs[0]["error"].startswith(KILLED) and "Traceback" not in err
    again = project.run(*words)
    assert again.code == 0 and "train.batch=4  cached" in again.err, again.err
    assert [job["status"] for job in again.json["jobs"]] == ["ok"] * 2
    ran = project.ran()
    assert ran.count("fetch") == 1 and ran.count("train") == 3, "the killed one's twice"
