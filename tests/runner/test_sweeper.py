"""What the jobs of a sweep are made of."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import OmegaConf

from pipeline.home import ROOT
from pipeline.runner import schema
from pipeline.runner.launchers import Serial
from pipeline.runner.sweeper import EveryCombination


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


COMPOSED = """
import runpy, sys
from hydra._internal import config_loader_impl as loader
made, calls = loader.create_defaults_list, []
loader.create_defaults_list = lambda **about: calls.append(1) or made(**about)
sys.argv[0] = "run.py"
try:
    runpy.run_path("run.py", run_name="__main__")
except SystemExit as ended:
    print(ended.code, len(calls))
"""


@pytest.mark.parametrize(("words", "end"), [("target.images=-1", "1 1"), ("seed=1,2", "1 1")])
def test_a_command_is_composed_once(words: str, end: str) -> None:
    command = [sys.executable, "-c", COMPOSED, words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), len(done.stderr.splitlines())) == (end, 1), done.stderr
