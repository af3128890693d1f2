"""Stage package: the graph and its plan -> package/, a library for what the config names, and
package.json."""

import shutil
from pathlib import Path

from pipeline import artifacts
from pipeline.packages import made
from pipeline.packages.kinds import NONE
from stages._main import Config, stage

OUTPUT = Path("package")


@stage
def main(cfg: Config) -> None:
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()
    found = {"package": made.write(cfg, OUTPUT)} if cfg["package"]["name"] != NONE else {}
    artifacts.write_json(Path("package.json"), found)
