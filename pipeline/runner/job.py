"""One run, from a composed config to a result: its folder, its stages, its end."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from pipeline import budget, home
from pipeline.artifacts import read_json, write_json, write_text
from pipeline.errors import ThimbleError, Unreadable
from pipeline.runner import allowed, boards, disk, own, replay, results, titles, versions, workspace
from pipeline.runner.code import Code
from pipeline.runner.progress import FOLDER, Notes
from pipeline.runner.remote import Remote
from pipeline.runner.screen import Screen, fail, shown
from pipeline.runner.stage import Outcome, Stages
from pipeline.runner.sweep import ABOUT
from pipeline.tracking import spool
from pipeline.tracking.checkout import PATCH, code_version, patch
from pipeline.tracking.entry import Entry


class Job:
    """A run in the making. ``result`` grows with each stage; ``finish`` keeps and shows it."""

    def __init__(self, config: DictConfig) -> None:
        self._hydra = HydraConfig.get()
        self.record = replay.recorded()
        self.config = resolved(config)
        if self.record:
            self.config = self.record.config(self.config)
        else:  # once more: some of it is known now only, or on this machine
            allowed.task(config, allowed.folders(self._hydra.runtime))
        self.config = workspace.params(self.config)
        self.swept = self._hydra.mode == RunMode.MULTIRUN
        self.overrides = list(self._hydra.overrides.task)
        self.folder = Path(self._hydra.runtime.output_dir)
        self.screen = Screen(self.config["output"] == "json")
        if sweep := os.environ.get(FOLDER):
            self.screen = Notes(Path(sweep), self._hydra.job.num, self.folder)
        self.result: dict[str, Any] = {"status": "failed", "run_dir": str(self.folder)}
        self._spooled = False
        self._stages: Stages | None = None
        self._took: dict[str, dict[str, Any]] = {}
        self._warnings: list[str] = []
        self._entry: Entry | None = None

    def run(self) -> dict[str, Any]:
        """Run the stages up to ``until``, or to the one that finds that it does not fit."""
        version = code_version()
        empty = not any(self.folder.iterdir())
        with self._ending(), workspace.held(self.folder, self.config):
            words = " ".join(["python run.py", *self.overrides])
            write_text(self.folder / "README.txt", README.format(words, shown(self.folder)))
            if version.get("code_dirty") == "true":
                write_text(self.folder / PATCH, patch(version["code_version"]))
            self._run_stages(version)
            if "forms" in self.result and "build" not in self._took:
                self._estimate()
            if self.result["status"] == "infeasible" and "memories" in self.result:
                self._advise()
            if self.record:
                self.result |= replay.verdict(self.record, self.folder)
        if empty and not self.swept and "began" in self.result and not self.record:
            workspace.forget(self.folder)
        return self.result

    def _run_stages(self, version: Mapping[str, str]) -> None:
        if self.config["until"] == home.IMPORT:
            from pipeline.importers.seen import seen  # with it comes NumPy

            self.result |= {"status": "ok", **seen(self.config["model"])}
            return
        self.screen.header(self.config, self.folder, self.overrides)
        code = Code(self.config)
        self._refuse(code)
        flashing = ("simulate",) if self.config["target"]["name"] == "flash" else ()
        early = FOLDER not in os.environ  # the jobs of a sweep keep all cores at work
        ran_in = {**versions.surroundings(), **version, "typed": str(home.typed())}
        keep, fresh = workspace.keep(self.folder, self.config), self.config["cache"]["fresh"]
        place = self.config["cache"]["remote"] or os.environ.get("THIMBLE_REMOTE", "")
        remote = Remote(place, self._warn) if place and not fresh else None
        with Stages(self.folder, keep, code, ran_in, flashing, early, remote) as self._stages:
            self._track(version)
            left = list(workspace.stages(self.config))
            while left:
                self.screen.start(left[0])
                for outcome in self._stages.bring(left, partial(self.screen.waiting, left[0])):
                    self._record(outcome)
                    left.remove(outcome.stage)
                if self.result["status"] != "ok":
                    break
        if fresh:  # it is done: next time has to begin anew, too
            shutil.rmtree(keep, ignore_errors=True)

    def _refuse(self, code: Code) -> None:
        """Read the user's file, if the network is in one, so that it is refused before any stage
        runs; a file that was read before by the same code has left a mark."""
        model = self.config["model"]
        if "enters" in model:
            about = json.dumps([model, code.about(model["enters"])["hash"]], sort_keys=True)
            mark = home.lock_file(f"read-{hashlib.sha256(about.encode()).hexdigest()[:32]}")
            if not Path(mark).exists():
                from pipeline.importers.seen import seen

                seen(model)
                Path(mark).touch()

    def _track(self, version: Mapping[str, str]) -> None:
        """Have it tracked from here on: a mistake that was found before is no failed run."""
        if self.config["tracking"] != "none":
            sweep, title = os.environ.get(FOLDER, ""), titles.of_run(self.config)
            if sweep:
                about = read_json(Path(sweep) / ABOUT)
                jobs = [*about["jobs"], *about.get("others", ())]
                title = titles.of_job(self.config, jobs, self._hydra.job.num)
            tags = {**version, **({"replay_of": self.record.name} if self.record else {})}
            if named := self._hydra.runtime.choices.get("experiment"):
                tags["experiment"] = str(named)
            self._entry = spool.begin(self.folder, title, tags, sweep)

    def _estimate(self) -> None:
        """Say what the program of a plan would take. No stage does: one that plans would depend on
        what writes C."""
        from pipeline.targets.planned import planned_in  # with it comes NumPy

        self.result |= planned_in(self.folder, self.config["hardware"])

    def _advise(self) -> None:
        """Name what would fit: strategies, limits for pruning and, for a single run, boards."""
        self.result["advice"] = budget.advised(self.config, results.reports(self.folder))
        larger = "a larger board"
        if not self.swept and (found := boards.with_room(self.result)):
            named = f"{larger}, such as {' or '.join(f'hardware={name}' for name in found)}"
            self.result["advice"] = self.result["advice"].replace(larger, named)

    def _warn(self, line: str) -> None:
        self._warnings.append(line)
        self.screen.warn(line)

    def _record(self, outcome: Outcome) -> None:
        self.screen.done(outcome)
        self._took[outcome.stage] = {"seconds": round(outcome.seconds, 3), "cached": outcome.cached}
        before = self.result.get("warnings", ())
        self.result = results.known(self.folder, self.config)
        for line in self.result.get("warnings", ()):
            if line not in before:
                self.screen.warn(line)

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """However it ends, the folder says how: nothing is lost, a sweep goes on."""
        error, readable = "", True
        try:
            yield
        except ThimbleError as mistake:
            error, readable = str(mistake), not isinstance(mistake, Unreadable)
        except KeyboardInterrupt:
            error = results.INTERRUPTED
            if self.swept:  # the other jobs end too
                raise
        except OSError as cause:
            error = disk.said(cause, self.folder)
        finally:
            self.result |= {"status": "failed", "error": error} if error else {}
            self.result |= {"stages": self._took, "overrides": self.overrides}
            began = readable and bool(self._took or (self._stages and self._stages.began))
            self.result |= {} if began else {"began": False}
            if told := [*self._warnings, *self.result.get("warnings", ())]:
                self.result |= {"warnings": told}
            with contextlib.suppress(OSError):  # a full disk: the line on the screen remains
                write_json(self.folder / "result.json", self.result)
                if self._entry is not None and began:
                    spool.end(self._entry, self.result)
                    self._spooled = True
                elif self._entry is not None:
                    spool.forget(self._entry)

    def finish(self) -> int:
        """Show the result of a single run, have it tracked, and return the exit code."""
        interrupted = self.result.get("error") == results.INTERRUPTED
        if self.result["status"] == "failed":
            fail(STOPPED if interrupted else self.result["error"])
        self.screen.result(self.result)
        if self._spooled:
            took = sum(stage["seconds"] for stage in self._took.values())
            patient = took > PATIENCE_SECONDS and not interrupted
            with contextlib.suppress(KeyboardInterrupt):  # the run is over: only waiting ends
                spool.start_tracking(wait=patient or self.config["tracking"] == "wait")
        return results.exit_code(self.result)


README = """\
What came of: {}
result.json has all figures; report.html, or plan.html, shows them; params.yaml is the whole config.
python run.py replay={} repeats it and compares; dvc metrics show and plots show work here.
"""
"""README.txt of a run's folder."""

STOPPED = "interrupted: nothing half-written is left, the same command continues"

PATIENCE_SECONDS = 20
"""A longer run also waits for its tracking, some seconds; a cached one is done at once."""


def resolved(config: DictConfig) -> dict[str, Any]:
    """Return the config as plain values, without those that are None: what params.yaml holds.

    Paths are made absolute: stages run elsewhere than where the command was typed.
    """
    content = OmegaConf.to_container(config, resolve=True, enum_to_str=True, throw_on_missing=True)
    plain: dict[str, Any] = _without_none(content)
    own.absolute(plain, home.typed())
    own.named(plain)
    if "hardware" in plain["prune"]:
        plain["prune"] = budget.asked(plain["prune"])
    return plain


def _without_none(item: Any) -> Any:
    if isinstance(item, dict):
        return {str(k): _without_none(v) for k, v in item.items() if v is not None}
    return [_without_none(v) for v in item] if isinstance(item, list) else item
