"""The pages in a browser: nothing fails, nothing is cut, all can be reached with the keyboard."""

from pathlib import Path
from typing import Any

import pytest

from tests.report.browser import DESKTOP, PAPER, PHONE, fits_across, ink, opened, too_faint, walked
from tests.report.golden import differing, drawn, file, pixels
from tests.report.pages import KINDS, RAN, made, write
from tests.tiers import quick


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {kind: folder / f"{kind}.html" for kind in KINDS}


def page_of(paths: dict[str, Path], kind: str) -> Path:
    if not paths[kind].is_file():
        write(paths[kind], *made(kind), ran=kind in RAN)
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
            assert not too_faint(page)
    unlike = differing(drawn(browser, page_of(paths, kind)), pixels(file(kind)))
    assert unlike < 0.002, "another map; if that is meant: python -m tests.report.golden"


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
def test_what_is_faint_and_what_differs_is_found(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "faint.html"
    path.write_text("<p style='color:#888'>faint <b style='background:#000'>not</b><p>clear")
    with opened(browser, path) as page:
        assert too_faint(page) == ["3.54 faint"]
    one, other = (pixels(file(kind)) for kind in ("slots", "too large"))
    assert differing(one, other) > 0.1 and differing(one, one[1:]) == 1.0


@pytest.mark.ci
def test_the_keyboard_reaches_all_that_answers(browser: Any, paths: dict[str, Path]) -> None:
    with opened(browser, page_of(paths, "slots")) as page:
        layers = ["pooled", "conv1", "conv2", "conv3", "pool", "logits"]
        tables = ["What lossless passes left", "Layers", "Confusion matrix"]
        assert walked(page) == [
            *("peak", "in", "out", "all", "scale", "map", "What lives at the chosen time"),
            *layers, *tables, "As pseudo-code",
        ]  # fmt: skip
        page.keyboard.press("Shift+Tab")
        page.locator("button.layer[data-layer=conv2]").focus()
        page.keyboard.press("Enter")
        assert page.locator("tr.chosen[data-layer=conv2]").count() == 1
        page.locator("summary").press("Enter")
        assert page.locator("pre").is_visible() and fits_across(page)


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
def test_a_map_is_drawn_once_it_has_a_place(browser: Any, paths: dict[str, Path]) -> None:
    hidden = """new MutationObserver((_, found) => {
        if (document.body) { document.body.style.display = "none"; found.disconnect(); }
    }).observe(document, {childList: true, subtree: true})"""
    with opened(browser, page_of(paths, "slots"), before=hidden) as page:
        assert not page.locator("#map").is_visible()
        page.evaluate("document.body.style.display = ''")
        page.wait_for_function("document.getElementById('map').width > 1000")
        assert ink(page, "#map") > 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["swap", "slots"])
def test_it_prints(kind: str, browser: Any, paths: dict[str, Path], tmp_path: Path) -> None:
    with opened(browser, page_of(paths, kind), PAPER, dark=True) as page:
        page.emulate_media(media="print")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert back == "rgb(255, 255, 255)" and not too_faint(page)
        assert fits_across(page), "wider than paper"
        page.pdf(path=str(tmp_path / "page.pdf"))
    assert (tmp_path / "page.pdf").stat().st_size > 20_000
