"""``python run.py flash RUN``: the firmware of a run that is already built, onto its board."""

from __future__ import annotations

from functools import partial

import numpy as np
from rich.console import Console

from pipeline import board
from pipeline.errors import ThimbleError
from pipeline.runner import replay
from pipeline.targets import device, flash

PORT, DRY_RUN, FLASHER = "target.port=", "target.dry_run=true", "hardware.flasher="


def run(name: str, *words: str) -> int:
    """Write the firmware of the run ``name``, as ``replay=RUN`` names it; return the exit code, 0.

    Args:
        words: of ``target.port=PORT``, ``hardware.flasher=COMMAND``, another than the board's, and
            ``target.dry_run=true``, which writes nothing.

    Raises:
        ThimbleError: for other words, a run that ended badly, or before ``build``, and what
            ``flash.run`` raises.
    """
    given = {key: word.removeprefix(key) for word in words for key in (PORT, FLASHER)
             if word.startswith(key)}  # fmt: skip
    if other := [word for word in words if word != DRY_RUN and not word.startswith(tuple(given))]:
        raise ThimbleError(
            f"flash {name}: leave out {other[0]}; have {PORT}PORT, {FLASHER}COMMAND and {DRY_RUN}"
        )
    port, dry_run = given.get(PORT, ""), DRY_RUN in words
    folder = replay.find(name)
    config = replay.read(folder).config(dict.fromkeys(replay.HERE))
    flasher = given.get(FLASHER, config["hardware"]["flasher"])
    flasher = flasher[1:-1] if flasher[:1] in ("'", '"') else flasher  # as Hydra wants braces
    hardware = board.hardware({**config["hardware"], "flasher": flasher})
    flash.ready(hardware, port, dry_run=dry_run)
    target = {"port": port, "dry_run": dry_run}
    _, written = flash.run(folder / "build", target, hardware, np.zeros((0, 1), np.uint8))
    said = device.said(written, dry_run)
    say = partial(Console().print, highlight=False, markup=False, soft_wrap=True)
    say(f"writes    {said['writes']}\n{'would run' if dry_run else 'ran      '} {said['command']}")
    return 0
