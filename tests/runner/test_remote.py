"""Other machines: a cache shared through a DVC remote, where a machine is a copy of the project
with a home of its own; and sweeps on clusters: submitit and Ray, each in its local mode."""

import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.home import STAGES
from pipeline.runner.progress import KILLED
from pipeline.runner.sweep import NOT_STARTED
from tests.programs import program
from tests.runner.project import Project
from tests.runner.test_kills import outputs
from tests.tiers import quick

Machines = Callable[[str], Project]


@pytest.fixture
def machine(tmp_path: Path) -> Machines:
    return lambda name: Project(tmp_path / name / "project")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return tmp_path / "remote"


def files(remote: Path) -> list[Path]:
    return sorted(path for path in remote.rglob("*") if path.is_file())


def run(project: Project, remote: Path | str, *args: str) -> tuple[Path, list[str]]:
    """The run's folder, and the stages that really ran."""
    project.ran()
    done = project.run("output=json", f"cache.remote={remote}", *args)
    assert done.code == 0, done.err
    return Path(done.json["run_dir"]), project.ran()


@pytest.mark.ci
def test_the_second_machine_runs_nothing(machine: Machines, remote: Path) -> None:
    """Nor what the first had made before there was a remote."""
    first = machine("one")
    assert first.run("until=fetch").code == 0
    one, ran = run(first, remote, "until=generate")
    assert ran == list(STAGES[1:6]), "the last one's output is a folder"
    second = machine("two")
    two, ran = run(second, remote, "until=generate")
    assert ran == [] and outputs(two) == outputs(one)
    shutil.rmtree(remote)
    assert second.run("until=generate").code == 0 and second.ran() == [], "it is in its own cache"


@pytest.mark.slow
def test_what_the_first_has_not_made_is_made_and_shared(machine: Machines, remote: Path) -> None:
    """Let two machines that round differently go on with their own; others get the first's."""
    first = run(machine("one"), remote, "until=train")[0] / "data/dataset.npz"
    second, again = machine("two"), ("until=train", "train.batch=9")
    assert run(second, remote, *again)[1] == ["train"]
    before = files(remote)
    third = machine("three")
    for word in ("pulled", "cached"):
        said = third.run(f"cache.remote={remote}", *again)
        assert said.code == 0 and third.ran() == [] and said.out.count(word) == 2
    assert files(remote) == before
    fourth = machine("four")
    fourth.env["FAKE_NOISE"] = "fetch"
    fourth.run("until=fetch")
    own = run(fourth, remote, "until=fetch")[0] / "data/dataset.npz"
    other = run(machine("five"), remote, "until=fetch")[0] / "data/dataset.npz"
    assert own.read_bytes() != first.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    "damage", quick(0, ["output", "note", "lost output", "list of a folder"], ci=2)
)
def test_a_damaged_remote_is_repaired(machine: Machines, remote: Path, damage: str) -> None:
    until = "until=generate" if damage == "list of a folder" else "until=fetch"
    good, _ = run(machine("one"), remote, until)
    output = (good / "data/dataset.npz").read_bytes()
    for path in files(remote):
        content = path.read_bytes()
        if {
            "output": content == output,
            "lost output": content == output,
            "list of a folder": path.suffix == ".dir",
            "note": b"stages.fetch" in content,
        }[damage]:
            path.chmod(0o644)
            path.unlink() if damage == "lost output" else path.write_bytes(content[:-9] + b"?")
    two, ran = run(machine("two"), remote, until)
    assert outputs(two) == outputs(good) and ran == [until.removeprefix("until=")]
    three, ran = run(machine("three"), remote, until)
    assert outputs(three) == outputs(good) and ran == []


@pytest.mark.ci
def test_a_remote_that_fails_is_one_warning(machine: Machines, remote: Path) -> None:
    remote.write_text("in the way")
    project = machine("one")
    done = project.run(f"cache.remote={remote}", "until=fetch")
    assert done.code == 0 and project.ran() == ["fetch"] and done.err == ""
    (line,) = [line for line in done.out.splitlines() if "shared cache" in line]
    assert f"{remote} failed, going on without it: " in line
    sweep = project.run("-m", f"cache.remote={remote}", "until=fetch", "seed=1,2")
    assert sweep.code == 0 and sweep.out.count("going on without it") == 1
    result = project.run("output=json", f"cache.remote={remote}", "until=fetch").json
    (warning,) = result["warnings"]
    assert warning == line.strip()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("lab", "cache.remote=lab is no DVC remote of this project: give a URL such as s3://"),
        ("https://example.org/cache", "notes of results are kept on no http server"),
        ("s3://bucket/folder", "requires 'dvc-s3' to be installed"),
    ],
)
def test_a_remote_that_cannot_work_is_an_error(untouched: Project, place: str, said: str) -> None:
    if place.startswith("s3") and importlib.util.find_spec("dvc_s3"):
        pytest.skip("dvc-s3 is installed")
    done = untouched.run(f"cache.remote={place}", "output=json")
    assert done.code == 1 and said in done.json["error"] and "\n" not in done.json["error"]
    assert done.err.endswith(f"{done.json['error']}\n") and untouched.ran() == []
    assert not (untouched.root / "outputs").exists()


@pytest.mark.ci
def test_a_remote_of_the_projects_own(machine: Machines, remote: Path) -> None:
    """``dvc remote add``; its password stays in the project's config.local."""
    for name in ("one", "two"):
        project = machine(name)
        project.write(".dvc/config", f"['remote \"lab\"']\n    url = {remote}\n")
        project.write(".dvc/config.local", "['remote \"lab\"']\n    verify = false\n")
        project.env["THIMBLE_REMOTE"] = "lab"
        done = project.run("output=json", "until=fetch")
        assert done.code == 0, done.err
        assert project.ran() == (["fetch"] if name == "one" else [])
        folder = Path(done.json["run_dir"])
        assert not any("lab" in path.read_text() for path in (folder / ".dvc").glob("config*"))
    done = project.run("cache.remote=leb")
    assert "cache.remote=leb is no DVC remote of this project: give one of lab, a URL" in done.err


@pytest.mark.ci
def test_a_fresh_run_uses_no_cache_and_leaves_none(machine: Machines, remote: Path) -> None:
    """Killed, it goes on in its folder."""
    project, again = machine("one"), ("cache.fresh=true", "hydra.run.dir=again", "until=train")
    good, _ = run(project, remote, "until=train")
    before = files(remote)
    cached = files(project.root / ".thimble" / "cache")
    folder, ran = run(project, remote, *again)
    assert ran == ["fetch", "train"] and outputs(folder) == outputs(good)
    assert not (folder / ".dvc" / "fresh").exists()
    project.hold("train")
    with project.start(*again) as process:
        project.wait_for("train")
        process.kill()
    project.release("train")
    folder, ran = run(project, remote, *again)
    assert ran == ["train"] and outputs(folder) == outputs(good)
    assert files(remote) == before and files(project.root / ".thimble" / "cache") == cached


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
    refuses = f"cp $1 {tmp_path}; echo no such part >&2; exit 1"
    for name, text in (("srun", "exit 0"), ("sbatch", refuses)):
        program(tmp_path / "tools", name, text)
    project.env["PATH"] = f"{tmp_path}/tools:{os.environ['PATH']}"
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
