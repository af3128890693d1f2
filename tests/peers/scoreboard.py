"""``python -m tests.peers.scoreboard FOLDER PAGE [NAME=COMMAND …]``: people's networks, the .tflite
and .onnx files in FOLDER, by this project and by others; ``FOLDER fetch`` brings there those of
``public.json``, from their addresses, checked by their hashes.

Ours is ``strategy=joint``, its flash with code as planned for a Cortex-M7. TensorFlow Lite Micro is
its wheel: its arena is the least that the interpreter takes, of 64-bit pointers, its flash the
file's size. A COMMAND writes C, with {model} and {c} for the files, such as
``onnx2c="onnx2c {model} > {c}"`` or ``emx="emx-onnx-cgen compile {model} {c}"`` (``pip install
'thimble-mcu[peers]'``): RAM and flash of that by -Os, without what it is linked to. Each peer, and
each plan, is a process of its own, which an arena that is far too small may end.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.importers.onnx import Onnx
from pipeline.importers.tflite import TFLite
from pipeline.plan.cost import cost
from pipeline.quantize.int8 import Int8
from pipeline.strategies.joint import Joint
from pipeline.targets.planned import planned
from tests.boards import load_hardware
from tests.importers.tflite_reference import frames, reference

LISTED = Path(__file__).with_name("public.json")
PASSES = ("constants", "fold_reshape", "fold_pad", "fold_mixed", "fold_tables", "dead_channels")
MOST = 1 << 24
"""Bytes of an arena."""
SECONDS = 120
"""Of processor time that a network may take."""
HEAD = ["network", "goes in", "arena", "flash", "TFLM's arena", "its file", "equal bytes"]


def listed() -> dict[str, tuple[str, str]]:
    """The address and hash of each public network, by the name that it has in a folder."""
    every = json.loads(LISTED.read_text())
    root = "https://raw.githubusercontent.com"
    return {
        f"{each['sha256'][:8]}_{Path(each['path']).name}": (
            f"{root}/{each['repo']}/{each['commit']}/{each['path']}", each["sha256"],
        )
        for each in every
    }  # fmt: skip


def fetch(folder: Path) -> None:
    for name, (address, wanted) in listed().items():
        with urlopen(address) as answer:
            content = answer.read()
        if hashlib.sha256(content).hexdigest() != wanted:
            raise SystemExit(f"{address} is another file than public.json says")
        (folder / name).write_bytes(content)


def apart(work: Callable[[], Any]) -> Any:
    """What ``work`` gives, in a process of its own; None where that ends before."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(2)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            os.write(writes, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else None


def ours(path: Path) -> list[Any]:
    """Columns from the second on; the last: whether an integer network's bytes are equal."""
    model = TFLite(path=str(path)) if path.suffix == ".tflite" else Onnx(path=str(path))
    try:
        net, board = model.float_graph(), load_hardware("stm32f746g_disco", streams_input=False)
        graph = Int8(observer="minmax", images=32).from_float(net, None) if net else model.graph()
        small = passes.applied(graph, PASSES)
        plan = Joint().plan(small, board)
        flash = planned(plan, small, board)["planned_flash_bytes"]
    except ThimbleError as error:
        return [f"no: {str(error).removeprefix(f'{path}: ')}", "", "", ""]
    equal = None
    if net is None and path.suffix == ".tflite":
        given = frames(graph, 2)
        wanted = apart(lambda: reference(path.read_bytes(), given, graph).tolist())
        equal = wanted and graph.evaluate(given).reshape(2, -1).tolist() == wanted
    return ["yes", cost(plan, small, board).arena_bytes, flash,
            "" if equal is None else "yes" if equal else "no"]  # fmt: skip


def takes(content: bytes, arena: int) -> bool:
    from tflite_micro.python.tflite_micro import runtime

    return bool(runtime.Interpreter.from_bytes(content, arena_size=arena))


def tflite_micro(content: bytes) -> list[Any]:
    """Its arena, by halves to 64 bytes, and the file's size."""
    low, high = 0, MOST
    if not apart(lambda: takes(content, high)):
        return ["no", ""]
    while high - low > 64:
        middle = (low + high) // 2
        low, high = (low, middle) if apart(partial(takes, content, middle)) else (middle, high)
    return [high, len(content)]


def in_c(command: str, path: Path) -> str:
    """RAM, with the largest frame on the stack, and flash of the C that ``command`` writes."""
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        c = folder / "net.c"
        done = subprocess.run(command.format(model=path, c=c), shell=True, capture_output=True)
        compiled = ["cc", "-Os", "-w", "-fstack-usage", "-c", str(c), "-o", f"{c}.o"]
        if done.returncode or subprocess.run(compiled, capture_output=True).returncode:
            return "no"
        said = subprocess.run(["size", f"{c}.o"], capture_output=True, text=True, check=True).stdout
        used = (folder / "net.c.su").read_text().splitlines()
    frame = max((int(line.split("\t")[1]) for line in used), default=0)
    text, data, bss = map(int, said.splitlines()[1].split()[:3])
    return f"{data + bss + frame:,}, {text + data:,}"


def main(given: str, to: str, *commands: str) -> None:
    folder, tools = Path(given), dict(each.split("=", 1) for each in commands)
    if to == "fetch":
        return fetch(folder)
    public, rows = listed(), list[list[Any]]()
    for path in sorted(each for each in folder.iterdir() if each.suffix in (".tflite", ".onnx")):
        gave_up = [f"no answer within {SECONDS} s", "", "", ""]
        *found, equal = apart(partial(ours, path)) or gave_up
        theirs = tflite_micro(path.read_bytes()) if path.suffix == ".tflite" else ["", ""]
        address = public.get(path.name, ("", ""))[0]
        name = f"[{path.name}]({address})" if address else path.name
        rows.append([name, *found, *theirs, equal, *(in_c(c, path) for c in tools.values())])
    into, same = ([row[n] for row in rows] for n in (1, 6))
    title = f"# Scoreboard of {datetime.now(UTC):%Y-%m-%d}, in bytes"
    count = f"{into.count('yes')} of {len(rows)} go in; {same.count('yes')} have equal bytes, "
    shown = [[*HEAD, *tools], ["---"] * (len(HEAD) + len(tools)), *rows]
    table = [" | ".join(f"{c:,}" if isinstance(c, int) else c for c in each) for each in shown]
    lines = [title, "", f"{count}{same.count('no')} others.", "", *(f"| {row} |" for row in table)]
    Path(to).write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main(*sys.argv[1:])
