"""``make packages`` on a machine whose apt is busy, as on every fresh Ubuntu: with stand-ins."""

import os
import re
import shutil
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from pipeline.home import ROOT
from tests.programs import program, ran, said

BUSY = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (unattended-upgr)"
APT = """\
echo "$@" >> {folder}/asked
rest=$(cat {folder}/busy)
[ "$rest" -gt 0 ] || exit {code}
echo $((rest - 1)) > {folder}/busy
echo "{said}" >&2
exit 100
"""


def make(folder: Path, busy: int, said: str = BUSY, code: int = 0) -> tuple[int, str, list[str]]:
    """Exit code, what is printed, and what apt-get was asked, if it fails ``busy`` times."""
    tools = folder / "tools"
    (folder / "busy").write_text(str(busy))
    for name, text in {
        "apt-get": APT.format(folder=folder, said=said, code=code),
        "dpkg": "exit 1",  # nothing is installed
        "sudo": '[ "$1" = -n ] && shift\nexec "$@"',
        "sleep": f"echo $1 >> {folder}/slept",
    }.items():
        program(tools, name, text)
    command = ["make", "-C", str(ROOT), "--no-print-directory", "packages", "PYTHON=python3"]
    path = f"{tools}:{os.environ['PATH']}"
    done = ran(command, env={"PATH": path}, timeout=300)
    return done.returncode, done.stdout + done.stderr, (folder / "asked").read_text().splitlines()


pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def test_a_lock_that_another_program_holds_is_waited_for(tmp_path: Path) -> None:
    code, said, asked = make(tmp_path, busy=3)
    assert code == 0 and said.count("Waiting up to 10 minutes for apt") == 1 and "E:" not in said
    assert (tmp_path / "slept").read_text().split() == ["5"] * 3
    asked = [line.removeprefix("-qq -o DPkg::Lock::Timeout=600 ") for line in asked]
    assert asked[:4] == ["update"] * 4
    assert asked[4].startswith("install -y gcc ")
    assert asked[5].startswith("install -y --no-install-recommends gcc-arm-none-eabi ")
    debian = "ID=debian" in Path("/etc/os-release").read_text().splitlines()
    assert asked[5].endswith(" chromium") == debian, "elsewhere it is no ordinary package"
    assert len(asked) == 6


def test_the_demo_installs_only_what_a_run_for_avr_needs_and_none_imports_more() -> None:
    flags = ["--no-print-directory", "-n", "-W", "pyproject.toml"]
    demo, test = (said(["make", "-C", ROOT, *flags, goal]) for goal in ("demo", "test"))
    for needed in (" gcc-avr ", " libsimavr-dev ", 'p["dependencies"]'):
        assert needed in demo and needed in test
    arm = (" gcc-arm-none-eabi ", " qemu-user ", " espeak-ng ", "arduino-core-avr", '["dev"]')
    for large in arm:
        assert large not in demo and large in test
    assert demo.splitlines()[-1].endswith("/python run.py hardware=arduino strategy=herringbone")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    dev, lent = (
        {re.split(r"[<>=;\[ ]", each)[0].lower() for each in names}
        for names in (extras["dev"], [*project["dependencies"], *extras["slurm"], *extras["ray"]])
    )
    owners, imported = packages_distributions(), set[str]()
    for file in [*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "stages").rglob("*.py")]:
        for name in re.findall(r"^ *(?:import|from) (\w+)", file.read_text(), re.M):
            imported |= {each.lower() for each in owners.get(name, [])}
    assert {"torch", "dvc", "mlflow"} <= imported and not imported & (dev - lent)


@pytest.mark.parametrize(
    ("busy", "said", "times"), [(9, "E: Unable to locate package gcc-avr", 1), (1000, BUSY, 120)]
)
def test_other_errors_are_said_at_once_and_it_does_not_wait_for_ever(
    tmp_path: Path, busy: int, said: str, times: int
) -> None:
    code, printed, asked = make(tmp_path, busy, said)
    assert code and said in printed and len(asked) == times
    assert (tmp_path / "slept").exists() == (times > 1)
