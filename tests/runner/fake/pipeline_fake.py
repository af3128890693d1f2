"""Stages that compute nothing: each hashes its inputs and its parameters into its outputs."""

import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline import config
from pipeline.anytime import ENOUGH, AnytimeSearch
from pipeline.artifacts import read_json, write_json, write_text
from pipeline.errors import ThimbleError, Unreadable

DATA, BOARD = "data/dataset.npz", "hardware"
C = ["generated/model.c", "generated/model.h"]
STAGES: dict[str, tuple[list[str], list[str], tuple[str, str]]] = {
    "fetch": ([], [DATA], ("data", "validation")),
    "train": ([DATA], ["weights.npz", "training.csv"], ("train", "batch")),
    "prune": (["weights.npz"], ["pruned.npz"], ("prune", "name")),
    "quantize": (["pruned.npz"], ["graph.json"], ("quantize", "name")),
    "schedule": (
        ["graph.json"],
        ["plan.json", "proof.json", "schedule.json"],
        (BOARD, "sram_bytes"),
    ),
    "generate": (["graph.json", "plan.json"], C, (BOARD, "core")),
    "build": (C, ["build/firmware.elf", "size.json"], (BOARD, "part")),
    "simulate": (["build/firmware.elf", DATA], ["device.json"], ("target", "images")),
    "prove": (["build/firmware.elf", "device.json"], ["machine_proof.json"], (BOARD, "clock_hz")),
    "measure": (
        ["machine_proof.json", "device.json", "size.json", "schedule.json"],
        ["metrics.json"],
        (BOARD, "clock_hz"),
    ),
}
"""Inputs and outputs of each stage, and the parameter that it depends on."""


@dataclass(frozen=True)
class Unused:
    """Fields that the config groups without code name."""

    validation: int = 1
    batch: int = 1
    path: str = ""


def make() -> None:
    """The stage whose program is running; ``FAKE_…`` variables make it fail or die."""
    name = Path(sys.argv[0]).stem
    _log(name)
    if "THIMBLE_SWEEP" in os.environ:
        Path(os.environ["FAKE_LOG"]).with_name(f"began-{name}-{Path.cwd().name}").write_text(
            os.environ["THIMBLE_RUNNER"]
        )
    cfg = config.load()
    inputs, outputs, (group, key) = STAGES[name]
    content = [str(cfg[group][key])]
    if name == "schedule":
        content.append(config.instantiate(cfg["strategy"]).plan())
    if os.environ.get("FAKE_NOISE") == name:
        content.append(str(time.time_ns()))
    read = b"".join(Path(path).read_bytes() for path in inputs)
    digest = hashlib.sha256(read + "".join(content).encode()).hexdigest()
    print(f"a stage's standard output: {name}")
    behave(name)
    for path in outputs:
        if path == "schedule.json":
            needed = config.instantiate(cfg["strategy"]).pmu_bytes
            report = {"pmu_bytes": needed, "digest": digest, "status": "ok"}
            if needed > cfg["hardware"]["sram_bytes"]:
                report |= {"status": "infeasible", "resource": "SRAM", "where": "conv2"}
                report |= {"needed_bytes": needed, "advice": "try another strategy"}
                report["available_bytes"] = cfg["hardware"]["sram_bytes"]
            write_json(Path(path), report)
        elif path.endswith(".json"):
            write_json(Path(path), {"digest": digest})
        else:
            write_text(Path(path), f"{path} {digest}\n")
    if name == "measure":
        found = {**read_json(Path("schedule.json")), "cycles": 5}
        if os.environ.get("FAKE_ACT") == "measure:wrong":
            found |= {"status": "failed", "error": "3 of 100 images differ"}
            found |= {"images_host": 10000, "mismatches_host": 3}
        if os.environ.get("FAKE_ACT") == "measure:chance":
            found |= {"warnings": ["accuracy 10.00% is no better than chance"]}
        write_json(Path("metrics.json"), found)


def held(name: str) -> Path:
    """While this file is there, the stage waits."""
    return Path(os.environ["FAKE_LOG"]).with_name(f"held-{name}")


def behave(name: str) -> None:
    while held(name).exists():
        time.sleep(0.01)
    acts: dict[str, Callable[[], None]] = {
        "fail": lambda: _raise(ThimbleError("the oven is cold: heat it")),
        "unreadable": lambda: _raise(Unreadable("it is no network")),
        "crash": lambda: _raise(KeyError("surprise")),
        "full": lambda: _raise(OSError(28, "No space left on device", "weights.npz")),
        "fill": fill,
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "search": lambda: search(name),
        "stubborn": stubborn,
    }
    stage, _, act = os.environ.get("FAKE_ACT", "").partition(":")
    if stage == name and act in acts:
        acts[act]()


def fill() -> None:
    """Leave no room on the disk."""
    with Path("filler").open("wb", buffering=0) as stream:
        while stream.write(bytes(1 << 12)):
            pass


def search(name: str) -> None:
    """Go on for ever with what is found at once."""
    with AnytimeSearch[str]() as anytime:
        anytime.has("a plan", 1.0)
        _log("searching")
        while True:
            time.sleep(0.01)
    Path(f".stages/{name}.once").touch()


def stubborn() -> None:
    """Search, and note when that shall end, and don't."""
    with AnytimeSearch[str]():
        signal.signal(ENOUGH, lambda *_: _log("enough"))
        _log("searching")
        while True:
            time.sleep(0.01)


def _log(word: str) -> None:
    with Path(os.environ["FAKE_LOG"]).open("a") as log:
        log.write(f"{word}\n")


def _raise(error: Exception) -> None:
    raise error
