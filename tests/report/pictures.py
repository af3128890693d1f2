"""Pictures of a page: ``python -m tests.report.pictures PAGE.html FOLDER``, on a desktop and on a
phone, light and dark, on paper; and of its memory map alone."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.report.browser import DESKTOP, PAPER, PHONE, chromium, opened

WAYS = {
    "desktop": (DESKTOP, False), "phone": (PHONE, False), "print": (PAPER, False),
    "dark": (DESKTOP, True), "phone_dark": (PHONE, True),
}  # fmt: skip


def take(path: Path, folder: Path) -> list[Path]:
    """A PNG for each of ``WAYS``, the whole page, and ``map.png``, where there is a map."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with chromium() as browser:
        for name, (size, dark) in WAYS.items():
            with opened(browser, path.resolve(), size, dark) as page:
                if name == "print":
                    page.emulate_media(media="print")
                made.append(folder / f"{name}.png")
                page.screenshot(path=str(made[-1]), full_page=True)
                if name == "desktop" and page.locator("#map").count():
                    made.append(folder / "map.png")
                    page.locator("#map").screenshot(path=str(made[-1]))
    return made


if __name__ == "__main__":
    for made in take(Path(sys.argv[1]), Path(sys.argv[2])):
        print(made)
