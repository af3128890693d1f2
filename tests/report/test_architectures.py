"""The figure of a search: a series for each strategy, survivors filled, what is unbeaten joined."""

from __future__ import annotations

from typing import Any

from pipeline.report.architectures import figure, png, unbeaten


def network(sizes: dict[str, float], *rungs: float, survives: bool = False) -> dict[str, Any]:
    return {"overrides": [], "bytes": sizes, "rungs": list(rungs), "survives": survives}


SEARCH = {
    "strategies": ["ordinary", "herringbone"],
    "networks": [
        network({"ordinary": 500, "herringbone": 400}, 0.5, 0.9, survives=True),
        network({"herringbone": 300}, 0.4),
        network({"herringbone": 450}, 0.6),
        network({"herringbone": 350}, -1.0),
        network({}),
    ],
}


def test_a_point_for_each_trained_network_and_strategy_that_fits() -> None:
    drawn = figure(SEARCH)
    assert drawn is not None
    (axes,) = drawn.axes
    ordinary, herringbone = axes.collections
    assert [[round(v, 6) for v in at] for at in ordinary.get_offsets().tolist()] == [[500, 10]]
    assert [x for x, _ in herringbone.get_offsets().tolist()] == [400, 300, 450]
    assert [len(each.get_facecolor()) for each in (ordinary, herringbone)] == [1, 3]
    assert (herringbone.get_facecolor()[:, 3] > 0).tolist() == [True, False, False]
    assert axes.get_title("left").startswith("5 networks drawn, 1 fit with no strategy, 1 survived")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == SEARCH["strategies"]
    line = next(line for line in axes.lines if line.get_label() == "herringbone")
    assert [x for x, _ in line.get_xydata().tolist()] == [300, 400]


def test_what_is_unbeaten() -> None:
    assert unbeaten([(5, 1.0), (3, 2.0), (4, 2.0), (6, 1.5)]) == [(3, 2.0), (5, 1.0)]
    assert unbeaten([]) == []


def test_it_is_byte_stable_and_nothing_is_no_picture() -> None:
    assert png(SEARCH) == png(SEARCH) and (png(SEARCH) or b"").startswith(b"\x89PNG")
    assert (
        png({"strategies": ["ordinary"], "networks": [network({}), network({"ordinary": 1})]})
        is None
    )
