import gzip
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline.datasets import store
from pipeline.datasets.store import ensure, home, is_good
from pipeline.errors import ThimbleError
from tests.datasets.standins import Failing, Given, pinned

CONTENTS = {"a": b"first file" * 100, "b": b"second file" * 50}
FILES = pinned(CONTENTS)


def test_files_are_fetched_once_and_then_offline(store_home: Path) -> None:
    source, later = Given(CONTENTS), Given(CONTENTS)
    folder = ensure("set", FILES, [source, later])
    assert {n: (folder / n).read_bytes() for n in CONTENTS} == CONTENTS
    assert ensure("set", FILES, [source]) == folder == store_home / "set"
    assert source.asked == 1 and later.asked == 0
    assert ensure("set", FILES, []) == folder


@pytest.mark.parametrize("damage", [b"", CONTENTS["a"][:-1], b"x" + CONTENTS["a"][1:]])
def test_a_damaged_or_cut_off_file_is_fetched_again(store_home: Path, damage: bytes) -> None:
    source = Given(CONTENTS)
    folder = ensure("set", FILES, [source])
    (folder / "a").write_bytes(damage)
    ensure("set", FILES, [source])
    assert (folder / "a").read_bytes() == CONTENTS["a"]
    assert source.asked == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"a": b"other", "b": CONTENTS["b"]},
        {"a.gz": gzip.compress(CONTENTS["a"])[:-9], "b": CONTENTS["b"]},
        {"a.gz": b"no gzip at all", "b": CONTENTS["b"]},
        {"b": CONTENTS["b"]},
    ],
)
def test_the_next_source_fills_in_what_one_lacks(store_home: Path, bad: dict[str, bytes]) -> None:
    good = Given({"a": CONTENTS["a"]}, "good")
    folder = ensure("set", FILES, [Failing(), Given(bad, "bad"), good])
    assert good.asked == 1
    assert (folder / "a").read_bytes() == CONTENTS["a"]
    assert (folder / "b").read_bytes() == CONTENTS["b"]


def test_the_error_names_every_source_and_why(store_home: Path) -> None:
    with pytest.raises(ThimbleError) as caught:
        ensure("set", FILES, [Failing(), Given({"a": b"wrong"}, "the wrong one"), Given({}, "nil")])
    message = str(caught.value)
    assert "\n" not in message
    for part in ("cannot get set", "the failing one (no luck)", "data.path", "nil (no a in it)",
                 "the wrong one (a has another SHA-256)"):  # fmt: skip
        assert part in message
    left = [path.name for path in (store_home / "set").iterdir()]
    assert left == [".lock"], "nothing half-written"


def test_a_file_that_unpacks_without_end_is_given_up(
    store_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_BYTES", 5000)
    source = Given({"a.gz": gzip.compress(bytes(6000))})
    with pytest.raises(ThimbleError, match=r"a\.gz unpacks to more than"):
        ensure("set", FILES, [source])
    assert not (store_home / "set" / "a").exists()


def test_concurrent_fetches_download_once(store_home: Path) -> None:
    source = Given(CONTENTS)
    threads = [threading.Thread(target=ensure, args=("set", FILES, [source])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.asked == 1
    assert all(is_good(store_home / "set" / file.name, file.sha256) for file in FILES)


def test_a_process_killed_while_fetching_leaves_the_set_usable(store_home: Path) -> None:
    killed = """
import os
from pipeline.datasets.store import ensure
from tests.datasets.standins import Given, pinned
class Dying(Given):
    def download(self, folder, names):
        super().download(folder, names)
        os._exit(9)
contents = {"a": b"x" * 1000}
ensure("set", pinned(contents), [Dying(contents)])
"""
    done = subprocess.run([sys.executable, "-c", killed], cwd=Path.cwd())
    assert done.returncode == 9
    source = Given(CONTENTS)
    folder = ensure("set", FILES, [source])
    assert source.asked == 1
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "a", "b"]


def test_a_store_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full one may be read-only; it is the user's cache unless told."""
    monkeypatch.delenv("THIMBLE_DATA", raising=False)
    assert home().name == "thimble"
    monkeypatch.setenv("THIMBLE_DATA", str(tmp_path / "full"))
    folder = ensure("set", FILES, [Given(CONTENTS)])
    assert folder.parent == home() == tmp_path / "full"

    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "read-only")

    with monkeypatch.context() as refused:
        refused.setattr(Path, "mkdir", refuse)
        assert ensure("set", FILES, []) == folder
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("THIMBLE_DATA", str(tmp_path / "file"))
    with pytest.raises(ThimbleError, match="THIMBLE_DATA"):
        ensure("set", FILES, [Given(CONTENTS)])
