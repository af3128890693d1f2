"""Pages in a headless Chromium, with whatever is said on its console."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
DESKTOP, PHONE = (1400, 1000), (390, 844)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    if not CHROMIUM:
        pytest.skip("no Chromium is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, path: Path, size: tuple[int, int] = DESKTOP, dark: bool = False,
           touch: bool = False) -> Iterator[Any]:  # fmt: skip
    """The page at ``path``. It must say nothing on the console, fail nowhere and fetch nothing."""
    said: list[str] = []
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        has_touch=touch,
        offline=True,
    )
    context.set_default_timeout(300_000)  # a busy machine is slow
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("file:") else
            said.append(f"fetches {request.url}"))  # fmt: skip
    page.goto(path.as_uri())
    try:
        yield page
    finally:
        context.close()
    assert not said, said


def fits_across(page: Any) -> bool:
    """Whether nothing makes the page wider than its window."""
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"))


def ink(page: Any, selector: str) -> int:
    """How many different colours a canvas shows."""
    return int(page.evaluate(
        """selector => {
            const canvas = document.querySelector(selector);
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        }""",
        selector,
    ))  # fmt: skip
