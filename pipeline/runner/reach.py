"""List what each key of the config can reach, and what a config file may say there.

One line for a key, or for keys alike; the first that matches counts. A test fails when a key of
the composed config, or a field of a class that it names, can hold text and has no line here. Files
come from other people: what reaches code, or writes outside of a run's folder, is on a list here or
is taken only as it is typed. ``allowed.py`` holds every config to this.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

NOTHING = r""
"""Only what is typed."""
BESIDE = "beside"
"""No pattern: paths of files beside the config, or below the folder of the command."""

NUMBER = r"-?[\d.]+(e[+-]?\d+)?|-?inf|nan|True|False"
WORD = r"[\w.+-]*"
TEXT = r"[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*"
"""One line, without what controls a terminal or turns the direction of writing."""
LINES = TEXT.replace(r"\x00-\x1f", r"\x00-\x09\x0b-\x1f")

TOOL = r"(\w+(-\w+)*-)?(cc|gcc|clang|objcopy|objdump)(-[\d.]+)?"
FLAG = r"""(?x)
      -m[a-z0-9-]+(=[\w+.-]+)?
    | -f[a-z0-9-]+(=\d+)?                       # no value that names a plugin, a linker, a file
    | -D[A-Z_][A-Z0-9_]*(=(0x[\dA-Fa-f]+|\d+)[uUlL]*)?      # a number, no C
    | -U[A-Za-z_]\w*
    | -O[0-3sgz]? | -g[0-3]? | -std=[\w:+]+ | -pedantic | -static | -nostdlib | -nostartfiles
    | -W[a-z][a-z0-9+-]*(=\d+)?
    | -Wl(,(--gc-sections|--strip-debug|--strip-all|--relax|--build-id=none|--no-warn-rwx-segments
        |--print-memory-usage|--defsym=\w+=(0x[\da-fA-F]+|\d+)))+
"""
FLASHERS = {
    "avrdude": r"-[DVqv]|-[pcPb] (\{part\}|\{port\}|\w+)|-U flash:w:\{hex\}:i",
    "bossac": r"--port=\{port\}|--offset=0x[0-9a-f]+|-[deivwRU]|\{bin\}",
    "openocd": r"-f (interface|target|board)/\w[\w.-]*\.cfg"
    r"|-c (?P<quote>['\"])program \{\{\{hex\}\}\}( verify| reset| exit)*(?P=quote)",
    "picotool": r"load|-[vx]|\{elf\}",
    "pyocd": r"flash|load|-t (\{part\}|\w+)|\{hex\}",
    "st-flash": r"--reset|--format ihex|write|\{hex\}",
    "teensy_loader_cli": r"--mcu=\w+|-w|\{hex\}",
}
"""The words that each may be told. OpenOCD's other commands can run programs."""
FLASHER = "|".join(f"({name}( ({words}))*)" for name, words in FLASHERS.items())
PLATFORMS = (
    "atmelavr|atmelmegaavr|atmelsam|nordicnrf52|nxplpc|raspberrypi|siliconlabsefm32|ststm32|teensy"
)

PLACE = r"(outputs|multirun)(/(?!\.\.(/|$))[\w.=,+@-]+)*"
JOB = r"(?!.*\.\.)([\w.=,+-]|\$\{hydra\.job\.(num|id)\})+"
"""A job's folder below its sweep's, as it is written: what it refers to changes from job to job."""
PORT = r"(?!.*\.\.)(/dev/(tty|cu\.|serial/)[\w.:+/-]*)?"
OPTIONS = (
    "n_jobs|cluster|name|timeout_min|cpus_per_task|gpus_per_node|mem_gb|nodes|tasks_per_node"
    "|slurm_(partition|account|qos|array_parallelism|constraint|gres|time|mem|exclude|comment)"
    r"|ray\.init\.object_store_memory|ray\.remote\.(num_cpus|num_gpus|memory|max_retries)"
    r"|ray\.remote\.resources\.\w+"
)
"""Options of launchers: no commands to run before a job, no other Python, and no cluster elsewhere,
which would be sent code and could send some."""
GROUPS = "data|frontend|model|train|prune|quantize|strategy"
CLASSES = "datasets|frontends|models|importers|training|pruning|quantize|strategies"
"""The folders of the groups' classes, in ``pipeline``."""
CODE, RUN, SAID = "code that is imported", "programs that are run", "C, packages and pages, escaped"
OWN, LINE, A_WORD = "the project's own", "a line of text", "a word"


class Line(NamedTuple):
    """Say what ``keys``, an expression, reach, and what a file may say: ``pattern``, ``may``."""

    keys: str
    reach: str
    pattern: str
    may: str


TABLE = (
    Line(rf"({GROUPS})\._target_", CODE, rf"pipeline\.({CLASSES})(\.\w+)+", OWN),
    Line(r"model\.factory", CODE, NOTHING, "nothing"),
    Line(r"model\.kwargs\..*", "the code of model.factory", NUMBER, "numbers"),
    Line(r"model\.(path|state_dict)|data\.path", "files that are read", BESIDE,
         "files beside it, or below the folder of the command"),
    Line(r"train\.weights", "files that are read", WORD, "a name in pipeline/training/released"),
    Line(r"train\.device", "PyTorch", r"\w*(:\d+)?", "a device"),
    Line(r"passes", CODE, r"\w*", "names of passes"),
    Line(r"model\.(activation|enters|block|blocks\..*)|hardware\.(card\.driver|regions\.\w+)",
         "nothing", WORD, A_WORD),
    Line(r"hardware\.(core|cpu|part|simulator|uart\.boot)", "options of compilers and simulators",
         WORD, A_WORD),
    Line(r"hardware\.toolchain\.(compiler|objcopy|objdump)", RUN, TOOL,
         "the usual name of a gcc, clang, objcopy or objdump in PATH"),
    Line(r"hardware\.toolchain\.flags", "options of compilers", FLAG,
         "options that run, read and write nothing"),
    Line(r"hardware\.toolchain\.package", "commands that messages tell you to type",
         r"([a-z0-9][a-z0-9.+-]*( (?!$)|$))*", "names of Debian packages"),
    Line(r"hardware\.flasher", "programs that are run, and OpenOCD's Tcl", rf"{FLASHER}|",
         f"one of {', '.join(FLASHERS)} that writes the firmware and does nothing else"),
    Line(r"hardware\.platformio", "code that PlatformIO installs", rf"({PLATFORMS})/\w+|",
         f"a board of {PLATFORMS.replace('|', ', ')}"),
    Line(r"target\.port", "devices that are written", PORT, "a serial port below /dev"),
    Line(r"codegen\.prefix|package\.version", "C, names of files", WORD, A_WORD),
    Line(r"cache\.remote", "programs that come from it and are run", NOTHING, "nothing"),
    Line(r"hardware\.(name|title|power\.source|card\.source)|codegen\.labels|package\.library"
         rf"|strategy\.until|model\.((in|out)puts|state)(\..*)?|data\.inputs|({GROUPS})\.name",
         SAID, TEXT, LINE),
    Line(r"(paper|figure)(\..*)?", "pages, tables and pictures, escaped", LINES, "text"),
    # Hydra makes what _target_ names, wherever it stands
    Line(r"hydra\.callbacks\.check\._target_", CODE, r"pipeline\.runner\.options\.Check", OWN),
    Line(r"hydra\.(sweeper|launcher)\._target_", CODE, r"hydra_plugins\.thimble\.\w+", OWN),
    Line(r"hydra\.(.*\.)?_(target|args|partial|recursive|convert)_(\..*)?", CODE, NOTHING,
         "nothing"),
    Line(r"study\..*|hydra\.sweeper\.(params|jobs|strategies|rungs|limits|space)(\..*)?",
         "configs, checked alike", LINES, "text"),
    Line(r"hydra\.sweeper\.sampler", "a class of Optuna's", r"\w+Sampler", "a sampler's name"),
    Line(r"hydra\.sweeper\.storage", "a database", NOTHING, "nothing"),
    Line(rf"hydra\.launcher\.({OPTIONS})", "a job's script", r"[\w.,:=+@/-]*", "words"),
    Line(r"hydra\.launcher\.ray\.init\.address", "a cluster that is sent code", "auto", "auto"),
    Line(r"hydra\.(callbacks|launcher|searchpath|env|overrides|job\.env_\w+)(\..*)?",
         "code, the environment, a cluster", NOTHING, "nothing"),
    Line(r"hydra\.(job|hydra)_logging\..*", "code and log files", NUMBER, "none and disabled"),
    Line(r"hydra\.(run|sweep)\.dir", "paths that are written and emptied", PLACE,
         "folders below outputs and multirun"),
    Line(r"hydra\.sweep\.subdir", "paths that are written", JOB, "a folder by the job's number"),
    Line(r"hydra\.output_subdir", "paths that are written", r"\.hydra", ".hydra or null"),
    Line(r"hydra\.(help|hydra_help|runtime|job|verbose|mode).*", "the screen", LINES, "text"),
)  # fmt: skip
REST = Line(".*", "nothing", WORD, "a number or a word")
"""All other keys: the schema and the classes hold them to numbers, truth values and words."""


@cache
def line(key: str) -> Line:
    """Find what is said of the dotted ``key``; the elements of a list have its key. What pruning
    asks the planner for, it has from keys of the same names."""
    own = re.sub(r"^prune\.(?=(hardware|strategy|passes)\b)", "", key)
    return next((each for each in TABLE if re.fullmatch(each.keys, own, re.DOTALL)), REST)
