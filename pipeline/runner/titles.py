"""Name runs, sweeps and their jobs: by what was chosen, not by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SEPARATOR = " · "
NAMED = ("model", "hardware", "strategy")
"""The groups whose options are a run's name."""

SAID = tuple(f"{word}=" for word in (*NAMED, "model.path", "model.factory"))
"""Overrides that the name says already: a user's network is called what its file is."""

LONGEST = 120
"""Characters of what was swept."""


def of_run(config: Mapping[str, Any]) -> str:
    """``mnist_2kb · arduino · herringbone``."""
    return SEPARATOR.join(str(config[group]["name"]) for group in NAMED)


def apart(jobs: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the overrides of each of ``jobs`` that not all of them have."""
    common = set.intersection(*map(set, jobs)) if jobs else set()
    return [[word for word in job if word not in common] for job in jobs]


def names(jobs: Sequence[Sequence[str]]) -> list[str]:
    """Name jobs by what tells them apart, on the screen and in pictures."""
    return [" ".join(words) or f"job {number}" for number, words in enumerate(apart(jobs))]


def of_job(config: Mapping[str, Any], jobs: Sequence[Sequence[str]], number: int) -> str:
    """The name of job ``number`` of ``jobs``: its run's, and what else tells it from the others."""
    own = (word for word in apart(jobs)[number] if not word.startswith(SAID))
    return SEPARATOR.join([of_run(config), *own])


def of_sweep(
    choices: Mapping[str, Any], typed: Sequence[str], jobs: Sequence[Sequence[str]], count: str = ""
) -> str:
    """Return the experiment's name, or what was swept: ``strategy=naive,herringbone · 2 jobs``.

    Args:
        choices: the option of each config group.
        typed: the overrides on the command line.
        count: what is said instead of how many jobs there are.
    """
    varied = {word.partition("=")[0] for words in apart(jobs) for word in words}
    swept = [word for word in typed if word.partition("=")[0] in varied]
    named = [str(choices[group]) for group in ("experiment", "sweep") if choices.get(group)]
    title = SEPARATOR.join(named + swept) or "sweep"
    title = title if len(title) <= LONGEST else f"{title[:LONGEST]}…"
    count = count or f"{len(jobs)} job{'s' if len(jobs) != 1 else ''}"
    return f"{title}{SEPARATOR}{count}"
