"""``make deps``: bring dvc.yaml up to date with what is imported, params.yaml with the config.

params.yaml is the default composition, resolved. Of each stage in dvc.yaml, the lines of ``deps``
that name a Python file are replaced by the import closure of its program, and of every ``_target_``
that an option of the groups in its ``${code.GROUP}`` lines may name; the chosen file itself is
that template line.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from hydra import compose, initialize_config_dir

from pipeline.artifacts import write_text
from pipeline.home import ROOT
from pipeline.runner import schema
from pipeline.runner.closure import closure, target_file
from pipeline.runner.job import resolved
from pipeline.runner.workspace import params_text

TEMPLATE = re.compile(r"\$\{code\.(\w+)\}")


def targets(root: Path, group: str) -> set[str]:
    """The files that ``_target_`` of the options of ``group`` name."""
    nodes = [yaml.safe_load(path.read_text()) for path in (root / "conf" / group).glob("*.yaml")]
    return {target_file(node["_target_"]) for node in nodes if node and "_target_" in node}


def code(root: Path, stage: str, groups: list[str]) -> list[str]:
    """The project's files that ``stage`` depends on, whatever the options of ``groups``."""
    files = closure(root, [f"stages/{stage}.py"])
    for target in set().union(*(targets(root, group) for group in groups)):
        files |= closure(root, [target]) - {target}
    return sorted(files)


def updated(root: Path) -> str:
    """The text that dvc.yaml should have."""
    text = (root / "dvc.yaml").read_text()
    for name, stage in yaml.safe_load(text)["stages"].items():
        groups = TEMPLATE.findall("\n".join(stage["deps"]))
        listed = "".join(f"      - {file}\n" for file in code(root, name, groups))
        block = re.compile(rf"(?m)(^  {name}:\n(?:^    .*\n)*?^    deps:\n)((?:^      - .*\n)+)")
        found = block.search(text)
        assert found, f"dvc.yaml: no deps of {name} in the usual form"
        lines = found[2].splitlines(keepends=True)
        kept = [line for line in lines if not line.strip(" -\n").endswith(".py")]
        text = text[: found.start()] + found[1] + "".join(kept) + listed + text[found.end() :]
    return text


def default_params(root: Path) -> str:
    """The text that params.yaml should have."""
    schema.register()
    with initialize_config_dir(str(root / "conf"), version_base="1.3"):
        return params_text(resolved(compose("config")))


if __name__ == "__main__":
    write_text(ROOT / "dvc.yaml", updated(ROOT))
    write_text(ROOT / "params.yaml", default_params(ROOT))
