"""Pages in a headless Chromium, with whatever is said on its console. ``python -m
tests.report.browser PAGE.html FOLDER`` takes pictures of one."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
FAINT = Path(__file__).parent / "too_faint.js"
DESKTOP, PHONE, PAPER = (1400, 1000), (390, 844), (700, 1000)
WAYS = {
    "desktop": (DESKTOP, False), "phone": (PHONE, False), "print": (PAPER, False),
    "dark": (DESKTOP, True), "phone_dark": (PHONE, True),
}  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, the machine's or Playwright's own; the test is skipped where there is none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = CHROMIUM or playwright.chromium.executable_path
        if not Path(path).is_file():
            pytest.skip("no Chromium: .venv/bin/playwright install --with-deps chromium gets one")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, path: Path, size: tuple[int, int] = DESKTOP, dark: bool = False,
           touch: bool = False, before: str = "") -> Iterator[Any]:  # fmt: skip
    """Open ``path``, after ``before`` ran in it; it says, fails and fetches nothing."""
    said: list[str] = []
    looks = {"viewport": {"width": size[0], "height": size[1]}, "has_touch": touch}
    scheme = "dark" if dark else "light"
    context = browser.new_context(**looks, color_scheme=scheme, offline=True)
    context.set_default_timeout(300_000)  # a busy machine is slow
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("file:") else
            said.append(f"fetches {request.url}"))  # fmt: skip
    if before:
        page.add_init_script(before)
    page.goto(path.as_uri())
    try:
        yield page
    finally:
        context.close()
    assert not said, said


def fits_across(page: Any) -> bool:
    """Check whether nothing makes the page wider than its window."""
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"))


def too_faint(page: Any) -> list[str]:
    """Texts of less contrast than WCAG 2.2 AA has: 4.5 to what is behind them; with it.

    What is behind is the nearest background that is one colour; boxes with a gradient hold no text.
    """
    return [str(each) for each in page.evaluate(FAINT.read_text())]


def walked(page: Any) -> list[str]:
    """List what Tab reaches, in turn, until it leaves the page: each is seen to be focused."""
    found: list[str] = []
    for _ in range(400):
        page.keyboard.press("Tab")
        at, outlined = page.evaluate(
            """() => {
                const at = document.activeElement, style = getComputedStyle(at);
                const name = at.id || at.dataset.map || at.dataset.layer || at.dataset.job
                    || at.getAttribute("aria-label") || at.textContent.slice(0, 30);
                return [at === document.body ? "" : name,
                    style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1];
            }"""
        )  # fmt: skip
        if not at or (found and at == found[0]):
            break
        assert outlined, f"one does not see that {at} has the focus"
        found.append(at)
    return found


def ink(page: Any, selector: str) -> int:
    """Count the different colours that a canvas shows."""
    return int(page.evaluate(
        """selector => {
            const canvas = document.querySelector(selector);
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        }""",
        selector,
    ))  # fmt: skip


def take(path: Path, folder: Path) -> None:
    """A PNG for each of ``WAYS``, the whole page, and ``map.png``, where there is a map."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for name, (size, dark) in WAYS.items():
            with opened(browser, path.resolve(), size, dark) as page:
                if name == "print":
                    page.emulate_media(media="print")
                page.screenshot(path=str(folder / f"{name}.png"), full_page=True)
                if name == "desktop" and page.locator("#map").count():
                    page.locator("#map").screenshot(path=str(folder / "map.png"))


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
