"""The C of the manual is compiled, and what can be run is. Zephyr's and ST's headers are stood in
for by what the examples use of them: that shows the network's part of each line to be right."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline.codegen import generate
from pipeline.codegen.options import Options, Stack
from pipeline.home import ROOT
from pipeline.prefix import Prefix
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import host, network
from tests.codegen.support import WARNINGS, uno, write
from tests.strategies.chains import mnist

ZEPHYR = """
#include <stdint.h>
#include <stdio.h>
#define K_FOREVER 0
#define K_LOWEST_APPLICATION_THREAD_PRIO 14
#define K_MSGQ_DEFINE(name, size, count, align) static int name[(size) * (count)]
#define K_THREAD_DEFINE(name, stack, entry, a, b, c, priority, options, delay) \\
    static char name[stack]; void start_##name(void) { name[0] = 0; entry(a, b, c); }
static inline int k_msgq_get(void *queue, void *data, int wait) { return queue && data && wait; }
#define printk printf
"""
CUBE = """
#include <stdint.h>
enum { HAL_OK, HAL_MAX_DELAY };
static int huart2;
static int HAL_UART_Receive(int *line, uint8_t *bytes, unsigned count, int wait) {
    return line && bytes && count && wait ? HAL_OK : 1;
}
static void HAL_UART_Transmit(int *line, uint8_t *bytes, unsigned count, int wait) {
    (void)line, (void)bytes, (void)count, (void)wait;
}
"""


def blocks(name: str) -> list[str]:
    text = (ROOT / "docs" / f"{name}.md").read_text()
    return re.findall(r"```c\n(.*?)```", text, re.DOTALL)


def sources(folder: Path, name: str) -> Path:
    """A network of bytes with the prefix ``name``, whose stack is known."""
    graph = network()
    options = Options(name, stack=Stack(400, "a compiler"))
    files = generate(graph, Ordinary().plan(graph, host()), host(), {}, options)
    return write(folder, Prefix(name).files(files))


def compiled(folder: Path, text: str) -> None:
    command = ["cc", *WARNINGS, "-Wno-unused-parameter", "-I.", "-x", "c", "-fsyntax-only", "-"]
    done = subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_manuals_program_runs(tmp_path: Path) -> None:
    (program,) = blocks("embedding")
    graph = mnist().graph()
    scale = {**graph.tensors, graph.input: replace(graph.tensors[graph.input], scale=(1 / 256,))}
    graph = replace(graph, tensors=scale)
    files = generate(graph, Ordinary("slots").plan(graph, uno()), uno(), {})
    write(tmp_path, {**files, "main.c": program})
    command = ["cc", *WARNINGS, "model.c", "main.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout
    image = np.clip(np.floor(np.arange(784) / 784 * 256 + 0.5), 0, 255).astype(np.int64)
    outputs = graph.outputs(image.reshape(1, 28, 28, 1)).reshape(-1)
    label, real = said.strip().split(", ")
    assert int(label) == outputs.argmax()
    assert float(real) == outputs.max() * graph.tensors[graph.output].scale[0]


def test_zephyrs_thread(tmp_path: Path) -> None:
    (text,) = blocks("zephyr")
    folder = sources(tmp_path, "kws")
    write(folder / "zephyr", {"kernel.h": ZEPHYR})
    compiled(folder, text)


def test_the_loop_of_a_cube_project(tmp_path: Path) -> None:
    (text,) = blocks("stm32cube")
    begin, loop = text.split("/* USER CODE END Includes */")
    program = f"{CUBE}{begin}int main(void) {{ for (;;) {{\n{loop}\n}} }}\n"
    compiled(sources(tmp_path, "kws"), program)


def test_every_macro_of_the_manual_is_in_the_header(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "embedding.md").read_text()
    table = text.partition("## What the header says")[2].partition("## Streams")[0]
    graph = network()
    made_of = {"graph": "0", "plan": "1"}
    plan = Ordinary().plan(graph, host())
    options = Options(stack=Stack(400, "a compiler"))
    header = generate(graph, plan, host(), made_of, options)["model.h"]
    said = set(re.findall(r"\bNN_[A-Z_]+[A-Z]\b|\bnn_\w+(?=\(| |`)", table))
    assert len(said) > 20
    assert not [name for name in said if not re.search(rf"\b{name}\b", header)]
