"""Sources of data sets, and the store that keeps them: fetched once, whole, or one line."""

import gzip
import http.server
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from pipeline.datasets import sources, store
from pipeline.datasets.sources import DebianPackage, Folder, Mirror, NpmPackage
from pipeline.datasets.store import SourceError, ensure, home, is_good
from pipeline.errors import ThimbleError
from tests.datasets.standins import Failing, Given, archive, pinned
from tests.programs import program, refusal, written


class Handler(http.server.SimpleHTTPRequestHandler):
    def send_header(self, keyword: str, value: str) -> None:
        """A file that is cut off is said to be longer."""
        cut = keyword == "Content-Length" and self.path.endswith("cut.gz")
        super().send_header(keyword, str(int(value) + 50) if cut else value)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a folder of files."""
    damaged = archive({"inner/good": b"content" * 1000})[:-40]
    content = {"good.gz": gzip.compress(b"content"), "cut.gz": b"half", "bad.tar.gz": damaged,
               "all.tar.gz": archive({"inner/good": b"content"})}  # fmt: skip
    folder = written(tmp_path_factory.mktemp("served"), content)
    handler = partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stand-in package managers that is looked into first."""
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_a_mirror_serves_files_or_an_archive(server: str, tmp_path: Path) -> None:
    Mirror(server).download(tmp_path, ["good"])
    assert gzip.decompress((tmp_path / "good.gz").read_bytes()) == b"content"
    Mirror(server, archive="all.tar.gz").download(tmp_path, ["good"])
    assert (tmp_path / "inner" / "good").read_bytes() == b"content"
    with pytest.raises(SourceError, match="HTTP 404"):
        Mirror(server).download(tmp_path, ["absent"])
    with pytest.raises(SourceError, match="cut off"):
        Mirror(server).download(tmp_path, ["cut"])
    with pytest.raises(SourceError, match=r"bad\.tar\.gz is damaged"):
        Mirror(server, archive="bad.tar.gz").download(tmp_path, ["good"])


def test_a_mirror_afar_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server that never answers costs seconds."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    tried, released = [], threading.Event()

    def refused(*arguments: object) -> None:
        tried.append(arguments)
        if len(tried) > 1:
            released.wait()
        raise OSError

    monkeypatch.setattr("socket.create_connection", refused)
    with pytest.raises(SourceError, match="no connection"):
        Mirror("https://mirror.invalid").download(tmp_path, ["a", "b", "c", "d"])
    assert len(tried) == 1
    with pytest.raises(SourceError, match="no connection"):
        Mirror("https://mirror.invalid").download(tmp_path, ["a"])
    released.set()  # it was not waited for


def test_a_folder_gives_plain_or_compressed_files(tmp_path: Path) -> None:
    source = written(tmp_path / "source", {"a": b"plain", "b.gz": b"packed", "c": b"other"})
    (tmp_path / "into").mkdir()
    Folder(str(source)).download(tmp_path / "into", ["a", "b"])
    assert sorted(path.name for path in (tmp_path / "into").iterdir()) == ["a", "b.gz"]
    with pytest.raises(SourceError, match="no such folder"):
        Folder(str(tmp_path / "absent")).download(tmp_path, ["a"])


def npm(clients: Path, folder: Path, made: bytes, depth: str = "into") -> Path:
    """A stand-in that packs ``made``, and the folder to download into."""
    (folder / "made.tgz").write_bytes(made)
    program(clients, "npm", f'echo "$@" > called; cp {folder}/made.tgz set-1.tgz')
    (folder / depth).mkdir(parents=True)
    return folder / depth


def test_npm_packs_and_runs_no_scripts(clients: Path, tmp_path: Path) -> None:
    into = npm(clients, tmp_path, archive({"package/data/a": b"from npm"}))
    NpmPackage("set@1").download(into, ["a"])
    assert (into / "package" / "data" / "a").read_bytes() == b"from npm"
    called = (into / "called").read_text().split()
    assert called[:2] == ["pack", "set@1"] and "--ignore-scripts" in called


def test_an_archive_that_leaves_its_folder_is_refused(clients: Path, tmp_path: Path) -> None:
    """By its name, or by a link."""
    into = npm(clients, tmp_path, archive({"../../escaped": b"outside"}), "in/to")
    with pytest.raises(SourceError, match="damaged"):
        NpmPackage("set@1").download(into, ["a"])
    assert not (tmp_path / "escaped").exists()
    link = tarfile.TarInfo("package/a")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / "set.tgz", "w:gz") as made:
        made.addfile(link)
    with pytest.raises(SourceError, match="'package/a' is no file"):
        sources.unpack(tmp_path / "set.tgz")
    assert not (tmp_path / "package").exists()


def test_an_archive_that_unpacks_without_end_is_given_up(
    clients: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_BYTES", 5000)
    into = npm(clients, tmp_path, archive({"a": bytes(3000), "b": bytes(3000)}))
    with pytest.raises(SourceError, match=r"set-1\.tgz unpacks to 0\.0 GB"):
        NpmPackage("set@1").download(into, ["a"])
    assert not list(into.rglob("a"))


def test_debian_unpacks_without_installing_and_failures_are_said(
    clients: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program(clients, "apt-get", "echo deb > set_1_all.deb")
    program(clients, "dpkg-deb", 'test "$1" = -x && mkdir -p "$3/usr" && cp "$2" "$3/usr/a"')
    DebianPackage("set").download(tmp_path, ["a"])
    assert (tmp_path / "unpacked" / "usr" / "a").read_text() == "deb\n"
    assert capsys.readouterr().err == "fetching Debian package set\n"
    program(clients, "npm", "echo noise >&2; echo 'no such package' >&2; exit 1")
    with pytest.raises(SourceError, match="no such package"):
        NpmPackage("absent@1").download(tmp_path, ["a"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match="apt-get is not installed"):
        DebianPackage("set").download(tmp_path, ["a"])


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
    given = [Failing(), Given({"a": b"wrong"}, "the wrong one"), Given({}, "nil")]
    message = refusal(lambda: ensure("set", FILES, given))
    assert "\n" not in message
    for part in ("cannot get set", "the failing one (no luck)", "data.path", "nil (no a in it)",
                 "the wrong one (a has another SHA-256)"):  # fmt: skip
        assert part in message
    left = [path.name for path in (store_home / "set").iterdir()]
    assert left == [".lock"], "nothing half-written"


def test_an_endless_file_is_given_up(store_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    with monkeypatch.context() as refused:
        refused.setattr(Path, "mkdir", Mock(side_effect=PermissionError(13, "read-only")))
        assert ensure("set", FILES, []) == folder
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("THIMBLE_DATA", str(tmp_path / "file"))
    with pytest.raises(ThimbleError, match="THIMBLE_DATA"):
        ensure("set", FILES, [Given(CONTENTS)])
