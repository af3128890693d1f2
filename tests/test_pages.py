"""Commands that the pages show compose, from keys and values that the options have."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from omegaconf import OmegaConf

from pipeline.home import ROOT
from pipeline.runner import options, schema

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACEHOLDER = re.compile(r"…|=[A-Z]+\b|experiment=mine|sweeper=optuna|=lab$")


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the overrides of each command; of a sweep's values the first."""
    for page in PAGES:
        text = re.sub(r"\\\n\s*", "", page.read_text())
        shown = re.findall(r"(?m)^ {4}\S*python run\.py (.*)$", text)
        shown += re.findall(r"`python run\.py ([^`]*)`", text.replace("\n", " "))
        for line in shown:
            line = re.split(r"\s+#|;|\s{3,}", line)[0]
            words = [word for word in shlex.split(line) if "=" in word]
            if words and not PLACEHOLDER.search(line) and not line.startswith("replay"):
                yield tuple(re.sub(r"^([^=]*=[^\[{,]*),.*", r"\1", word) for word in words)


@pytest.mark.ci
def test_commands_compose() -> None:
    found = set(commands())
    assert len(found) > 70
    for words in found:
        config = schema.composed(*words, hydra=True)
        for group in schema.CODE_GROUPS:
            node: Any = OmegaConf.to_container(config[group], resolve=True)
            options.checked(group, node)
