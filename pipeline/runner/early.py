"""Mistakes that a stage would find, perhaps after an hour of training: found before any runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig

from pipeline import home, sealing
from pipeline.artifacts import regular
from pipeline.budget import above_input, enough, limits
from pipeline.config import instantiate
from pipeline.errors import ThimbleError
from pipeline.packages import boards
from pipeline.prefix import Prefix
from pipeline.runner import allowed, disk, needs
from pipeline.runner import boards as known
from pipeline.runner.own import paths
from pipeline.runner.schema import plain

LEAST = {
    **{"hardware.sram_bytes": 1, "hardware.flash_bytes": 1, "target.images": 0},
    "sliding.rows": 0,
}
FOUR_BITS = "pipeline.quantize.int4.Int4"

Config = Mapping[str, Any]


def check(config: DictConfig) -> None:
    """Raise ThimbleError for numbers without a meaning, files that are not there, and options
    that a stage after training would refuse; when there is nowhere to keep results, or
    a compiler or a simulator is missing."""
    allowed.task(config, allowed.folders(config.hydra.runtime))
    disk.make_home()
    chosen = plain(config)
    for look in (_numbers, _packages, _files, _prunes, _board, needs.check):
        look(chosen)
    if any("hardware.sram_bytes=" in word for word in config.hydra.overrides.task):
        _part(chosen, config.hydra.runtime.choices["hardware"])


def _numbers(config: Config) -> None:
    for name, least in LEAST.items():
        group, _, key = name.partition(".")
        if (value := config[group][key]) < least:
            raise ThimbleError(f"{name}={value}: give {least} or more")
    board = config["hardware"]
    card, core = board["card"], board["cpu"] or board["core"]
    sealing.check(card["security"], board["name"], card["bytes"], core)
    if home.no_later("generate", config["until"]):
        sealing.driven(card["engine"])
    Prefix(config["codegen"]["prefix"])


def _packages(config: Config) -> None:
    name, until, board = config["package"]["name"], config["until"], config["hardware"]
    if name == "none":
        return
    boards.check(name, board["name"], board["platformio"])
    if not home.no_later("schedule", until):
        raise ThimbleError(
            f"package={name}: it is made of a plan, and until={until} ends before there is one; "
            "until=schedule is the least"
        )


def _files(config: Config) -> None:
    for group, key, path in paths(config):
        place, said = home.typed() / path, f"{group}.{key}={path}"
        if not place.exists():
            raise ThimbleError(f"{said}: there is no such file, looked for in {place.parent}")
        if group == "model":  # data may be a folder, which is hashed with all that is in it
            regular(place, said)


def _prunes(config: Config) -> None:
    model, prune, quantize = config["model"], config["prune"], config["quantize"]
    if (name := prune["name"]) == "none":
        return
    if not home.no_later(model.get("enters") or home.STAGES[0], "prune"):
        raise ThimbleError(
            f"prune={name}: model={model['name']} arrives with its weights and is not pruned here; "
            "leave prune out, and prune the network before it is exported"
        )
    within, rows = limits(prune), config["sliding"]["rows"]
    if quantize["_target_"] == FOUR_BITS and name != "magnitude":
        raise ThimbleError(
            f"prune={name}: quantize=int4 takes chains of layers, which only prune=magnitude makes "
            "smaller; use quantize=int8_qat train=float"
        )
    enough(prune)
    free = config["hardware"]["streams_input"] or config["hardware"]["input_again"]
    above_input(within, model.get("input_shape") or (), free)
    if within and rows:
        raise ThimbleError(
            f"prune.{next(iter(within))}: a limit holds for a whole window, and sliding.rows={rows}"
            ": prune without sliding.rows, or without limits"
        )
    instantiate(prune)
    if prune["epochs"] and not instantiate(config["data"]).labelled:
        raise ThimbleError(
            f"prune.epochs={prune['epochs']}: fine-tuning needs labelled images, and "
            f"data={config['data']['name']} has none; choose another data, or prune.epochs=0"
        )


def _board(config: Config) -> None:
    """Check that the board a run will write to is there: now, not after hours of training."""
    target = config["target"]
    if target["name"] == "flash" and target["check"] == "layers":
        raise ThimbleError(
            "target.check=layers: a board at its line does not say what its layers write: "
            "target=simulate or host"
        )
    if target["check"] == "layers" and config["strategy"].get("frames", 1) > 1:
        raise ThimbleError(
            "target.check=layers follows one frame at a time, not several in flight: set "
            "strategy.frames=1"
        )
    if target["name"] == "flash" and home.no_later("simulate", config["until"]):
        from pipeline import board
        from pipeline.targets import flash

        flash.ready(board.hardware(config["hardware"]), target["port"], dry_run=target["dry_run"])


def _part(config: Config, name: str) -> None:
    """Check that SRAM given by hand is on the part, which AVRs run on, as they are simulated."""
    board, target = config["hardware"], config["target"]["name"]
    if board["core"] != "avr" or target == "host" or not home.no_later("simulate", config["until"]):
        return
    own = known.named(name)
    if own.part == board["part"] and own.sram_bytes < board["sram_bytes"]:
        raise ThimbleError(
            f"hardware.sram_bytes={board['sram_bytes']}: the {own.part} that the program runs on "
            f"has {own.sram_bytes:,} B: leave it out, choose a larger board, such as "
            "hardware=arduino_mega, or run nothing, by until=schedule or target=host"
        )
