"""Programs of others in this project's harness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from pipeline import artifacts
from pipeline.hardware import Hardware
from pipeline.targets import builds, cortex_m, toolchain, tools
from pipeline.targets.avr_stack import Bound
from pipeline.targets.harness import harness_sources
from pipeline.targets.toolchain import Size
from tests.targets.conftest import model

STACK_BYTES = 8192

CPP_FLAGS = (
    "-std=gnu++14", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics",
    "-fno-use-cxa-atexit",
)  # fmt: skip

SYSTEM = """
static char heap[16384] __attribute__((aligned(8)));
void *_sbrk(int bytes) {
    static int taken;
    if (bytes < 0 || taken + bytes > (int)sizeof heap) return (void *)-1;
    taken += bytes;
    return heap + taken - bytes;
}
void __attribute__((noreturn)) _exit(int code) { for (;;) (void)code; }
int _kill(int process, int signal) { (void)process, (void)signal; return -1; }
int _getpid(void) { return 1; }
int _fstat(int file, void *found) { (void)file, (void)found; return -1; }
int _read(int file, char *bytes, int count) { (void)file, (void)bytes, (void)count; return -1; }
int _write(int file, char *bytes, int count) { (void)file, (void)bytes, (void)count; return -1; }
int _lseek(int file, int at, int from) { (void)file, (void)at, (void)from; return -1; }
int _close(int file) { (void)file; return -1; }
int _isatty(int file) { (void)file; return 0; }
"""
"""What the C library asks of a system."""


def joined(
    sources: Sequence[Path],
    flags: Sequence[str],
    output: Path,
    hardware: Hardware,
    cpp_flags: Sequence[str] = (),
) -> Path:
    """``sources``, C and C++, compiled into one object file in ``output``; an option of ``flags``
    overrules the board's."""
    wanted = ("-m", "-O", "-f")
    kept = [flag for flag in hardware.toolchain.flags if flag.startswith(wanted)]
    compiler = hardware.toolchain.compiler
    made = []
    (output / "system.c").write_text(SYSTEM)
    for number, source in enumerate([*sources, output / "system.c"]):
        made.append(output / f"published_{number}.o")
        plain = source.suffix == ".c"
        command = [compiler if plain else compiler.replace("gcc", "g++"), *kept, *flags, "-w"]
        command += ["-std=gnu11"] if plain else [*CPP_FLAGS, *cpp_flags]
        command += ["-c", str(source), "-o", str(made[-1])]
        tools.run(command, output, f"compiling {source.name}")
    whole = [compiler, *kept, "-r", "-nostdlib", *map(str, made), "-lm"]
    tools.run([*whole, "-o", "published.o"], output, "linking the program")
    return output / "published.o"


def built(
    folder: Path, hardware: Hardware, input_bytes: int, program: Path, outputs: int = 16
) -> Size:
    """The harness, a model that calls ``published`` of the object file ``program``, and that, in
    ``folder``. What it leaves in the arena are its ``outputs`` of 8 bits."""
    header = (Path(__file__).parent.parent / "fixture" / "model.h").read_text()
    for word, value in {
        "NN_INPUT_BYTES 16": f"NN_INPUT_BYTES {input_bytes}",
        "NN_OUTPUT_COUNT 3": f"NN_OUTPUT_COUNT {outputs}",
        "NN_ARENA_BYTES 32": f"NN_ARENA_BYTES {-(-outputs // 32) * 32}",
        "int16_t nn_output_t": "int8_t nn_output_t",
    }.items():
        assert word in header
        header = header.replace(word, value)
    code = model(
        globals="static uint8_t nn_given[NN_INPUT_BYTES] __attribute__((aligned(16)));\n"
        "static uint32_t nn_at;\nint published(void *, void *);",
        feed="for (uint32_t n = 0; n < count; n++) nn_given[nn_at++ % NN_INPUT_BYTES] = bytes[n];",
        invoke="nn_at = 0; if (published(nn_given, nn_arena)) return NN_CORRUPT;",
    ).replace("static uint8_t nn_arena", "__attribute__((aligned(16))) static uint8_t nn_arena")
    files = {**harness_sources(hardware), "model.h": header, "model.c": code}
    for name, content in files.items():
        wide = content.replace("uint16_t count", "uint32_t count")
        artifacts.write_text(folder / "generated" / name, wide if "model" in name else content)
    unknown = Bound(STACK_BYTES, ())  # calls through pointers have none
    with (
        patch.object(toolchain, "build_host"),
        patch.object(toolchain, "objects", beside(program)),
        patch.object(cortex_m, "_bound", return_value=unknown),
    ):
        return builds.build(folder / "generated", folder / "build", hardware)


def beside(program: Path):  # type: ignore[no-untyped-def]
    """``toolchain.objects``, with another in the folder."""
    usual = toolchain.objects

    @contextmanager
    def objects(*arguments: object) -> Iterator[Path]:
        with usual(*arguments) as folder:  # type: ignore[arg-type]
            (folder / program.name).write_bytes(program.read_bytes())
            yield folder

    return objects
