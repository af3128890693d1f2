"""The pages in a browser: nothing fails, nothing is cut, all can be reached with the keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.browser import DESKTOP, PHONE, chromium, fits_across, ink, opened
from tests.report.pages import KINDS, made, write
from tests.tiers import quick


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {kind: folder / f"{kind}.html" for kind in KINDS}


def page_of(paths: dict[str, Path], kind: str) -> Path:
    if not paths[kind].is_file():
        write(paths[kind], *made(kind), ran=kind == "slots")
    return paths[kind]


@pytest.mark.parametrize("kind", quick(["swap"], KINDS, ci=4))
def test_a_page_is_drawn_and_not_cut(kind: str, browser: Any, paths: dict[str, Path]) -> None:
    for size, dark in ((DESKTOP, False), (PHONE, True)):
        with opened(browser, page_of(paths, kind), size, dark) as page:
            assert fits_across(page), f"wider than {size[0]} pixels"
            assert ink(page, "#map") > 8
            assert page.locator("#map-alive tr").count() > 0
            back = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert back == ("rgb(20, 25, 30)" if dark else "rgb(255, 255, 255)")


def said(page: Any) -> str:
    return str(page.locator("#map-said").inner_text())


@pytest.mark.ci
def test_the_map_is_walked_with_the_keyboard(browser: Any, paths: dict[str, Path]) -> None:
    with opened(browser, page_of(paths, "slots")) as page:
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "map":
                break
        assert page.evaluate("document.activeElement.id") == "map"
        hint = said(page)
        page.keyboard.press("p")
        assert "conv2" in page.locator("#map-when").inner_text() and said(page) != hint
        page.keyboard.press("ArrowUp")
        first = said(page)
        page.keyboard.press("ArrowUp")
        assert said(page) != first and "Lives from" in first
        page.keyboard.press("ArrowRight")
        assert "conv3" in page.locator("#map-when").inner_text()
        assert page.locator("tr.chosen[data-layer=conv3]").count() == 1
        for key in ("+", "+", "-", "s", "0", "ArrowLeft", "ArrowDown"):
            page.keyboard.press(key)
        assert "conv2" in page.locator("#map-when").inner_text()


@pytest.mark.ci
def test_pointing_and_choosing_a_layer(browser: Any, paths: dict[str, Path]) -> None:
    with opened(browser, page_of(paths, "slots"), PHONE, touch=True) as page:
        canvas = page.locator("#map")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        page.touchscreen.tap(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"])
        assert "conv" in said(page) and "needed by" in said(page)
        page.locator("button.layer[data-layer=logits]").tap()
        assert page.locator(".chosen[data-layer=logits]").count() == 2
        page.locator("button.layer[data-layer=logits]").tap()
        assert page.locator(".chosen[data-layer=logits]").count() == 0


@pytest.mark.ci
def test_it_prints(browser: Any, paths: dict[str, Path], tmp_path: Path) -> None:
    with opened(browser, page_of(paths, "swap"), dark=True) as page:
        page.emulate_media(media="print")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert back == "rgb(255, 255, 255)"
        page.pdf(path=str(tmp_path / "page.pdf"))
    assert (tmp_path / "page.pdf").stat().st_size > 20_000
