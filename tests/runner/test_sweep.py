"""Sweeps: one trained network, a row a job, one JSON object; studies, published tables."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import OmegaConf

from pipeline.home import ROOT, STAGES
from pipeline.report import pareto
from pipeline.report.figures import _panels, _places
from pipeline.runner import launchers, schema
from pipeline.runner.command import PLUGINS
from pipeline.runner.launchers import Jobs, Local, Serial
from pipeline.runner.progress import KILLED
from pipeline.runner.results import rows, unpublished
from pipeline.runner.screen import published
from pipeline.runner.sweep import compared
from pipeline.runner.sweeper import EveryCombination, variants
from pipeline.runner.table import keep
from tests.runner.project import Project, nothing_outlives
from tests.tiers import quick
from tests.waiting import until


@pytest.mark.ci
def test_jobs_share_the_trained_network(project: Project) -> None:
    words = ("strategy=naive,herringbone", "hardware=arduino,big", "hydra/launcher=local")
    run = project.run("-m", "output=json", *words)
    assert run.code == 0, run.err
    lines = run.err.splitlines()
    assert lines[0].startswith("4 jobs in multirun/") and len(lines) == 6
    assert lines[-1] == "4 of 4 jobs: 0 running, 2 done, 0 cached, 2 infeasible, 0 failed"
    result = run.json
    assert result["status"] == "ok"
    assert [(j["strategy"], j["hardware"]) for j in result["jobs"]] == [
        *(("naive", "arduino"), ("naive", "big")),
        *(("herringbone", "arduino"), ("herringbone", "big")),
    ]
    assert [j["status"] for j in result["jobs"]] == ["infeasible"] * 2 + ["ok"] * 2
    ran = project.ran()
    assert ran.count("train") == 1 and ran.count("schedule") == 2 and ran.count("measure") == 2


@pytest.mark.ci
def test_a_failed_job_is_a_row_and_the_others_go_on(project: Project) -> None:
    source = (project.root / "pipeline/strategies/big.py").read_text()
    broken = source.replace('return "Big"', "return 1 / 0").replace("Big", "Broken")
    project.write("pipeline/strategies/broken.py", broken)
    classes = "pipeline.strategies.broken.Broken,pipeline.strategies.big.Big"
    run = project.run("-m", "output=json", f"strategy._target_={classes}")
    assert run.code == 1 and "Traceback" not in run.err
    assert [job["status"] for job in run.json["jobs"]] == ["failed", "infeasible"]
    assert run.json["jobs"][0]["error"] == "schedule: ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("words", "said"),
    quick(1, [
        (("strategy=herringbone,herring",), "unknown strategy 'herring': did you mean"),
        (("seed=1,2", "strategy.layout=heap"), "strategy.layout: Invalid value 'heap', expected "
         "one of [slots, contiguous]"),
        (("strategy._target_=os.system,pipeline.strategies.big.Big",), "'os.system' is outside"),
        (("seed=1,2", "hydra/launcher=lokal"), "unknown hydra/launcher 'lokal': did you mean "
         "hydra/launcher=local?"),
    ]),
)  # fmt: skip
def test_a_mistake_stops_a_sweep_before_it_begins(
    untouched: Project, words: tuple[str, ...], said: str
) -> None:
    run = untouched.run("-m", "output=json", *words)
    (line,) = run.err.splitlines()
    assert said in line and run.code == 1
    assert run.json == {"status": "failed", "error": line}
    assert not (untouched.root / "multirun").exists() and not untouched.ran()


@pytest.mark.ci
def test_concurrent_cold_runs_train_once(project: Project) -> None:
    project.hold("train")
    here = ("output=json", "until=schedule")
    processes = [project.start(*here, f"hardware.sram_bytes=200{n}") for n in range(3)]
    until(lambda: len(list((project.root / "outputs").glob("*/*/params.yaml"))) == 3)
    project.release("train")
    for process in processes:
        _, err = process.communicate()
        assert process.returncode == 0, err
    ran = project.ran()
    assert [ran.count(stage) for stage in STAGES[:5]] == [1] * 4 + [3]  # memories differ
    weights = list((project.root / "outputs").glob("*/*/weights.npz"))
    assert len(weights) == 3 and len({path.read_bytes() for path in weights}) == 1


@pytest.mark.ci
def test_a_killed_worker_is_a_row_and_the_others_go_on(project: Project) -> None:
    """Two of four jobs are at work when one's process is killed with SIGKILL."""
    project.hold("train")
    args = ("-m", "output=json", "until=train", "train.batch=3,4,5,6", "hydra/launcher=local")
    process = project.start(*args)
    project.worker(0, "train").kill()
    project.release("train")
    out, err = process.communicate()
    sweep = json.loads(out)
    assert process.returncode == 1 and "Traceback" not in err, err
    assert [job["status"] for job in sweep["jobs"]] == ["failed", "ok", "ok", "ok"]
    killed = sweep["jobs"][0]
    assert killed["error"] == KILLED and "train.batch=3" in killed["overrides"]
    assert f"train.batch=3  failed  {KILLED}" in err
    assert json.loads((Path(sweep["run_dir"]) / "result.json").read_text()) == sweep
    nothing_outlives(project)
    project.ran()
    again = project.run(*args)
    assert again.code == 0 and [job["status"] for job in again.json["jobs"]] == ["ok"] * 4
    assert project.ran() == ["train"], "the cache was whole, and kept"


def test_a_job_waits_for_its_network_while_there_are_others() -> None:
    calls: list[Any] = [SimpleNamespace(network=name) for name in "aab"]
    assert launchers.first(calls, {"a"}) is calls[2]
    assert launchers.first(calls, ()) is launchers.first(calls, {"a", "b"}) is calls[0]


def test_what_a_line_gives_comes_before_what_all_jobs_have() -> None:
    sweeper = EveryCombination(
        params={"strategy.scheduler": "swapnn", "seed": "1,2"}, jobs=["a=1 b=2"]
    )
    line = ["model=resnet18", "strategy.scheduler=best"]
    assert sweeper.words(line) == [*line, "seed=1,2"]
    assert sweeper.words([]) == ["strategy.scheduler=swapnn", "seed=1,2"]
    assert sweeper.lines == [["a=1", "b=2"]]


JOBS = (
    "seed=7",
    "seed=8 target=host target.images=3",
    "target=host passes=[constants] codegen.labels=[a,b]",
    "target=host passes=[constants] seed=3",
    "strategy=joint +model.kwargs.a=3 ~seed",
    "security=none hardware.card.security=integrity hydra.sweep.subdir=x",
    "model={name:mist}",
)


@pytest.mark.slow
def test_a_job_is_what_hydra_composes_of_its_words() -> None:
    schema.register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        whole = loader.load_configuration("config", ["until=train"], run_mode=RunMode.MULTIRUN)
        jobs = Serial()
        context = SimpleNamespace(config_loader=loader)
        jobs.setup(hydra_context=context, task_function=print, config=whole)  # type: ignore[arg-type]
        for line in JOBS:
            asked = loader.load_sweep_config(whole, line.split())
            assert OmegaConf.to_container(jobs._config(line.split())) == OmegaConf.to_container(
                asked
            )
        for line in ("seed=none", "sed=3", "strategy=jont"):
            with pytest.raises(HydraException):
                jobs._config([line])


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["experiment=swapnn_fig6"], Local),
        (["experiment=swapnn_fig6", "hydra/launcher=serial"], Serial),
        (["seed=1,2"], Serial),
    ],
)
def test_jobs_of_an_experiment_run_on_every_core(words: list[str], kind: type[Jobs]) -> None:
    schema.register()
    launchers.register(PLUGINS)
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        config = loader.load_configuration("config", words, run_mode=RunMode.MULTIRUN)
    config.hydra.sweep.dir = "sweep"
    sweeper = EveryCombination()
    context: Any = SimpleNamespace(config_loader=loader)
    sweeper.setup(hydra_context=context, task_function=print, config=config)
    assert type(sweeper.jobs_launcher) is kind
    assert sweeper.jobs_launcher.options == ({"n_jobs": -1} if kind is Local else {})


CONFIG: dict[str, Any] = {
    "model": {"name": "net", "input_shape": [80, 80, 3]},
    "strategy": {"name": "partial", "accumulator_bits": 8},
}
RESULT = {"strategy": "partial", "pmu_bytes": 5.0}


@pytest.mark.parametrize(
    ("keys", "matches"),
    [
        ({}, True),
        ({"strategy": "partial"}, True),
        ({"strategy": "ordinary"}, False),
        ({"model": "net", "model.input_shape": [80, 80, 3], "strategy.accumulator_bits": 8}, True),
        ({"model": "net", "model.input_shape": [96, 96, 3]}, False),
        ({"strategy.accumulator_bits": 16}, False),
        ({"strategy.unknown": 1}, False),
    ],
)
def test_a_row_is_for_jobs_with_its_values(keys: dict[str, Any], matches: bool) -> None:
    row = {"name": "a", "metric": "pmu_bytes", "paper": 4, **keys}
    expected = {"name": "a", "metric": "pmu_bytes", "paper": 4, "ours": 5.0}
    assert rows([row], RESULT, CONFIG) == ([expected] if matches else [])


def test_rows_of_layers_of_what_follows_from_other_figures_and_of_what_is_not_published() -> None:
    paper = [{"name": "theirs", "paper": "7 kB"}]
    assert rows(paper, RESULT, CONFIG) == []
    (line,) = published({"unpublished": unpublished(paper)})
    assert line == "  theirs: 7 kB published, of a network that is not"
    traffic = [{"layer": "a", "mops": 1.0}, {"layer": "b", "mops": 2.0}]
    result = {"strategy": "swap", "traffic": traffic}
    table = [{"name": "one", "layer": "b", "metric": "mops", "paper": 2},
             {"name": "net", "layer": "*", "metric": "mops"},
             {"name": "time", "metric": "time_pct", "of": {"wh": [1, 1], "seconds": [2, 3]}},
             ]  # fmt: skip
    found = [(row["name"], row["ours"]) for row in rows(table, result, CONFIG)]
    assert found == [("one", 2), ("net a", 1), ("net b", 2), ("time", 50)]


def job(strategy: str, instructions: int | None = None, *words: str, **more: Any) -> dict[str, Any]:
    found = {"strategy": strategy, "overrides": [f"strategy={strategy}", *words], "model": "net"}
    return found | ({"instructions": instructions} if instructions else {}) | more


def test_each_network_has_its_own_ordinary_job() -> None:
    small, large = ("model.input_shape=[1]",), ("model.input_shape=[2]",)
    row = {"name": "a", "metric": "instructions_over_ordinary", "paper": None, "ours": None}
    jobs = compared(
        [
            job("ordinary", 100, *small, pmu_bytes=10),
            job("partial", 110, *small, pmu_bytes=4, rows=[row, row | {"metric": "x"}]),
            job("ordinary", 1000, *large),
            job("partial", 900, *large),
        ]
    )
    assert jobs[1]["instructions_over_ordinary"] == pytest.approx(1.1)
    assert jobs[1]["pmu_over_ordinary"] == 0.4
    assert [row["ours"] for row in jobs[1]["rows"]] == [pytest.approx(1.1), None]
    assert jobs[3]["instructions_over_ordinary"] == 0.9
    assert "pmu_over_ordinary" not in jobs[3]
    alone, without = job("partial", 7, model="other"), job("partial")
    assert compared([alone, without, job("ordinary")])[:2] == [alone, without]


STUDY = [{"strategy.buffer_bytes": 16, "seed": 2}, {"strategy.scheduler": "best"}]


def test_each_set_of_values_is_one_more_job_in_one_panel() -> None:
    job = ["model=a", "strategy.buffer_bytes=8", "strategy.scheduler=swapnn"]
    assert variants(job, STUDY) == [
        (job, {}),
        (["model=a", "strategy.scheduler=swapnn", "strategy.buffer_bytes=16", "seed=2"], STUDY[0]),
        (["model=a", "strategy.buffer_bytes=8", "strategy.scheduler=best"], STUDY[1]),
    ]
    assert variants(["model=a", "study=[]"], STUDY) == [(["model=a"], {})]
    assert variants(["model=a"], []) == [(["model=a"], {})]
    jobs = [{"n": 1, "y": 5}, {"n": 2, "y": 6, "set": STUDY[0]}, {"n": 3, "y": 7, "set": STUDY[1]},
            {"n": 4, "y": 8, "set": {}}]  # fmt: skip
    panels = _panels(jobs)
    assert [[job["n"] for job in panel] for panel in panels] == [[1, 2, 3], [4]]
    spec = {"each": "study", "y": ["y"], "keys": ["strategy.scheduler"]}
    assert [name for name, _ in _places(panels[0], spec)] == ["as the job", "scheduler best"]


@pytest.mark.ci
def test_a_sweep_has_a_job_with_stages_of_its_own_for_each(project: Project) -> None:
    """With lines of jobs, for each of which what params= has is added."""
    text = (
        "# @package _global_\nuntil: schedule\nhydra:\n  mode: MULTIRUN\n  sweeper:\n"
        "    params: {hardware.stack_reserve_bytes: '1,2'}\n"
        "    jobs: [strategy=herringbone hardware=arduino, strategy=herringbone hardware=big]\n"
    )
    project.write("conf/experiment/lines.yaml", text)
    paper = "paper=[{name: x, metric: pmu_bytes, paper: 1, hardware.sram_bytes: 1999}]"
    study = "study=[{hardware.sram_bytes: 1999}]"
    run = project.run("experiment=lines", "output=json", study, paper)
    assert run.code == 0, run.err
    jobs = run.json["jobs"]
    assert [job["hardware"] for job in jobs] == ["arduino"] * 4 + ["big"] * 4
    assert [job["set"] for job in jobs] == [{}, {"hardware.sram_bytes": 1999}] * 4
    assert len({tuple(job["overrides"]) for job in jobs}) == 8
    ran = project.ran()
    assert ran.count("train") == 1 and ran.count("schedule") == 2
    assert [row["ours"] for row in run.json["rows"]] == [jobs[1]["pmu_bytes"]] * 4


def test_a_picture_that_fails_is_said_and_costs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pareto, "png", Mock(side_effect=ValueError("no finite limits")))
    job = {"status": "ok", "overrides": [], "run_dir": str(tmp_path / "0")}
    files = [tmp_path / "table.csv", tmp_path / "sweep.html"]
    assert keep(tmp_path, {"jobs": [job]}, None) == files, "there is nothing else to draw"
    assert sorted(tmp_path.iterdir()) == sorted([*files, tmp_path / "table.json"])
    said = capsys.readouterr()
    assert said.err == "pareto.png could not be drawn: no finite limits\n" and not said.out
