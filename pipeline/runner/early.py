"""Mistakes that a stage would find, perhaps after an hour of training: found before any runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline import home, sealing
from pipeline.budget import above_input, enough, limits
from pipeline.config import instantiate
from pipeline.errors import ThimbleError
from pipeline.given import regular
from pipeline.packages import boards
from pipeline.prefix import Prefix
from pipeline.runner import allowed, disk, needs
from pipeline.runner.own import PATHS

FILES = ("model.path", "model.state_dict")
"""Keys that name a file, never a folder."""

LEAST = {"hardware.sram_bytes": 1, "hardware.flash_bytes": 1, "target.images": 0}
FOUR_BITS = "pipeline.quantize.int4.Int4"


def check(config: DictConfig) -> None:
    """Raises ThimbleError for numbers without a meaning, files that are not there, and options
    that a stage after training would refuse; when there is nowhere to keep results, or
    a compiler or a simulator is missing."""
    allowed.task(config, allowed.folders(config.hydra.runtime))
    disk.make_home()
    for key, least in LEAST.items():
        if (value := OmegaConf.select(config, key)) < least:
            raise ThimbleError(f"{key}={value}: give {least} or more")
    card = config["hardware"]["card"]
    security = str(getattr(card["security"], "name", card["security"]))
    core = config["hardware"]["cpu"] or config["hardware"]["core"]
    sealing.check(security, config["hardware"]["name"], card["bytes"], core)
    Prefix(config["codegen"]["prefix"])
    _packages(config)
    _windows(config["sliding"])
    for group, keys in PATHS.items():
        for key in keys:
            if path := config[group].get(key):
                _exists(f"{group}.{key}", str(path))
    _data(config["data"])
    _prunes(config)
    _board(config)
    needs.check(config)


def _board(config: DictConfig) -> None:
    """Check that the board a run will write to is there: now, not after hours of training."""
    target, until = config.target, config.until.name
    if target.name.name == "flash" and home.STAGES.index(until) >= home.STAGES.index("simulate"):
        from pipeline import board
        from pipeline.targets import flash

        node: Any = OmegaConf.to_container(config.hardware, resolve=True, enum_to_str=True)
        flash.ready(board.hardware(node), target.port, dry_run=target.dry_run)


def _packages(config: Mapping[str, Any]) -> None:
    name, until = (str(getattr(v, "name", v)) for v in (config["package"]["name"], config["until"]))
    if name == "none":
        return
    node = config["hardware"]
    boards.check(name, node["name"], node["core"], node.get("platformio") or "")
    if home.STAGES.index(until) < home.STAGES.index("schedule"):
        raise ThimbleError(
            f"package={name}: it is made of a plan, and until={until} ends before there is one; "
            "until=schedule is the least"
        )
    if (ear := config["frontend"]["name"]) != "none":
        raise ThimbleError(
            f"package={name}: its examples feed images, and none listens as frontend={ear} asks: "
            "leave package out; until=generate has the C with nn_listen, which docs/embedding.md "
            "tells of"
        )
    if (wanted := config["package"]["weights_in"]) not in ("flash", "sram"):
        raise ThimbleError(f"package.weights_in={wanted}: use flash or sram")


def _windows(sliding: Mapping[str, Any]) -> None:
    if any(sliding[key] < 1 for key in ("windows", "rows")):
        raise ThimbleError(
            f"sliding.windows={sliding['windows']}, sliding.rows={sliding['rows']}: 1 at least"
        )


def _exists(key: str, path: str) -> None:
    place = home.typed() / Path(path).expanduser()
    if not place.exists():
        raise ThimbleError(f"{key}={path}: there is no such file, looked for in {place.parent}")
    if key in FILES or not place.is_dir():
        regular(place, f"{key}={path}")


def _data(data: Mapping[str, Any]) -> None:
    """A file of the user's own: sizes and shapes, before it is hashed or read."""
    place = home.typed() / Path(str(data.get("path") or "")).expanduser()
    if place.is_file():
        node = {key: data[key] for key in data if key != "path"}
        instantiate({**node, "path": str(place)}).probe()


def _prunes(config: Mapping[str, Any]) -> None:
    model, prune, quantize = config["model"], config["prune"], config["quantize"]
    if prune["name"] == "none":
        return
    enters = home.STAGES.index(model.get("enters") or home.STAGES[0])
    if enters > home.STAGES.index("prune"):
        raise ThimbleError(
            f"prune={prune['name']}: model={model['name']} arrives with its weights and is not "
            "pruned here; leave prune out, and prune the network before it is exported"
        )
    within = limits(prune)
    if quantize["_target_"] == FOUR_BITS and prune["name"] != "magnitude":
        raise ThimbleError(
            f"prune={prune['name']}: quantize=int4 takes chains of layers, which only "
            "prune=magnitude makes smaller; use quantize=int8_qat train=float"
        )
    enough(prune)
    shape = model.get("input_shape") or ()
    above_input(within, shape, config["hardware"]["streams_input"])
    windows = config["sliding"]["windows"]
    if within and windows > 1:
        raise ThimbleError(
            f"prune.{next(iter(within))}: a limit holds for one window, and sliding.windows="
            f"{windows}: prune with sliding.windows=1, or without limits"
        )
    instantiate(prune)
    if prune["epochs"] and not instantiate(config["data"]).labelled:
        raise ThimbleError(
            f"prune.epochs={prune['epochs']}: fine-tuning needs labelled images, and "
            f"data={config['data']['name']} has none; choose another data, or prune.epochs=0"
        )
