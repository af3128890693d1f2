"""Describe and write a package: the same bytes for the same content."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline import artifacts

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip can say: of every file in it."""


@dataclass(frozen=True)
class Package:
    """
    Attributes:
        name: of the folder that all files are in.
        files: text by path below it.
    """

    name: str
    files: Mapping[str, str]

    @property
    def zipped(self) -> bytes:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(self.files):
                entry = zipfile.ZipInfo(f"{self.name}/{path}", EPOCH)
                entry.external_attr = 0o644 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, self.files[path])
        return content.getvalue()

    def write(self, folder: Path) -> Path:
        """Return the files in a folder, and the same as a zip beside it; the zip's path."""
        for path, text in self.files.items():
            artifacts.write_text(folder / self.name / path, text)
        artifacts.write_bytes(folder / f"{self.name}.zip", self.zipped)
        return folder / f"{self.name}.zip"
