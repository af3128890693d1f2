"""Models that others publish: found where people have them, fetched by hash."""

import hashlib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.public_models import fetch


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_what_is_not_what_its_hash_says_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(b"a network")
    good = hashlib.sha256(b"a network").hexdigest()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as server:
        Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/net.tflite"
        with pytest.raises(ValueError, match="hash"):
            fetch({"theirs/net.tflite": (url, "0" * 64)}, tmp_path / "into")
        assert not [path for path in (tmp_path / "into").rglob("*") if path.is_file()]
        fetch({"theirs/net.tflite": (url, good)}, tmp_path / "into")
        server.shutdown()
    fetch({"theirs/net.tflite": (url, good)}, tmp_path / "into")  # it is there: nobody is asked
    assert (tmp_path / "into/theirs/net.tflite").read_bytes() == b"a network"
