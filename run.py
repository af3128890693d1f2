"""Compose the config, run the stages, track the run: ``python run.py hardware=arduino``.

``python run.py --help`` lists the groups; CONTRIBUTING.md says where things are.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

gc.disable()  # until all is imported (runner/garbage.py): looking for garbage meanwhile finds none

try:
    import hydra
    from omegaconf import DictConfig

    from pipeline.runner import command
    from pipeline.runner.job import Job
except KeyboardInterrupt:  # from here on, command.run sees to it
    print("interrupted: nothing had begun", file=sys.stderr)
    sys.exit(130)


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> dict[str, Any]:
    """One run. A job of a sweep returns its result; a single run shows it and exits with it."""
    job = Job(config)
    result = job.run()
    if not job.swept:
        sys.exit(job.finish())
    return result


if __name__ == "__main__":
    sys.exit(command.run(main))
