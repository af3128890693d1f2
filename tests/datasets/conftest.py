from pathlib import Path

import pytest


@pytest.fixture
def store_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store of this test's own."""
    home = tmp_path / "home"
    monkeypatch.setenv("THIMBLE_DATA", str(home))
    return home
