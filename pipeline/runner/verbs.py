"""Words for something else than a run: ``doctor``, ``board check FILE``, ``flash RUN …``,
``compare RUN RUN …``, ``best METRIC …``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.runner import allowed, compared, described, doctor, flashed

VERBS: dict[tuple[str, ...], tuple[Callable[..., int], range]] = {
    ("doctor",): (doctor.run, range(1)),
    ("board", "check"): (described.check, range(1, 2)),
    ("flash",): (flashed.run, range(1, 5)),
    ("compare",): (compared.compare, range(1000)),
    ("best",): (compared.best, range(1, 1000)),
}
"""What returns the exit code, by its words; it is given the words after these, so many."""


def called(words: Sequence[str]) -> int | None:
    """Return the exit code of what ``words`` ask for; None where that is a run."""
    for verb, (function, counts) in VERBS.items():
        named, rest = tuple(words[: len(verb)]), words[len(verb) :]
        if named == verb and len(rest) in counts:
            allowed.listen(rest)
            return function(*rest)
    return None
