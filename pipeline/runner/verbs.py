"""Words for something else than a run: ``doctor``, ``board check FILE``, ``flash RUN …``,
``compare RUN RUN …``, ``best METRIC …``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.runner import allowed, compared, described, doctor, flashed

VERBS: dict[tuple[str, ...], Callable[..., int]] = {
    ("doctor",): doctor.run,
    ("board", "check"): described.check,
    ("flash",): flashed.run,
    ("compare",): compared.compare,
    ("best",): compared.best,
}
"""What returns the exit code, by its words; it is given the words after these."""
COUNTS = {
    ("doctor",): range(1),
    ("board", "check"): range(1, 2),
    ("flash",): range(1, 5),
    ("compare",): range(1000),
    ("best",): range(1, 1000),
}


def called(words: Sequence[str]) -> int | None:
    """Return the exit code of what ``words`` ask for; None where that is a run."""
    for verb, function in VERBS.items():
        named, rest = tuple(words[: len(verb)]), words[len(verb) :]
        if named == verb and len(rest) in COUNTS[verb]:
            allowed.listen(rest)
            return function(*rest)
    return None
