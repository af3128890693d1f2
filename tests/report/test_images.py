"""What is shown of the test images: counted and chosen by hand."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipeline.plan.cost import cost
from pipeline.report import page
from pipeline.report.images import MOST_CLASSES, SHOWN, answers, picture
from tests.report.pages import METRICS, PROVENANCE, made

OUTPUTS = np.array([[9, 0, 0], [0, 5, 4], [7, 0, 1], [2, 1, 0], [0, 3, 9]], np.int8)
LABELS = np.array([0, 1, 2, 1, 2])
IMAGES = np.arange(5 * 4 * 4, dtype=np.uint8).reshape(5, 4, 4, 1)


def test_counts_and_the_worst_first() -> None:
    found = answers(OUTPUTS, LABELS, IMAGES)
    assert found
    assert found.confusion == ((1, 0, 0), (1, 1, 0), (1, 0, 1)) and found.largest == 1
    assert [(each.number, each.label, each.said) for each in found.worst] == [(2, 2, 0), (3, 1, 0)]
    assert [each.number for each in found.typical] == [1, 4, 0]
    found = answers(np.array([[-128, 127]], np.int8), np.array([0]), IMAGES[:1])
    assert found and [each.said for each in found.worst] == [1] and not found.typical


@pytest.mark.parametrize(
    ("outputs", "labels"),
    [(OUTPUTS, LABELS[:0]), (OUTPUTS[:, :1], LABELS * 0), (OUTPUTS, LABELS + 5)],
)
def test_nothing_is_said_where_nothing_is_classified(
    outputs: np.ndarray, labels: np.ndarray
) -> None:
    assert answers(outputs, labels, IMAGES) is None


def test_few_are_shown_and_no_matrix_of_many_classes() -> None:
    rng = np.random.default_rng(0)
    many = rng.integers(-128, 128, (200, MOST_CLASSES + 1)).astype(np.int8)
    labels = rng.integers(0, MOST_CLASSES + 1, 200)
    found = answers(many, labels, np.zeros((200, 2, 2, 1), np.uint8))
    assert found and not found.confusion and len(found.worst) == SHOWN and not found.largest


def test_a_picture_is_the_image() -> None:
    for image in (IMAGES[3], np.full((300, 200, 3), 7, np.uint8)):
        head, _, data = picture(image).partition(",")
        assert head == "data:image/png;base64"
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        assert max(drawn.shape) <= 96 and drawn.flat[0] == image.flat[0]
    assert picture(np.zeros((4, 4, 2), np.uint8)) == "" == picture(np.zeros((4, 4, 1), np.float32))


def test_the_page_has_them(tmp_path: Path) -> None:
    plan, graph, hardware = made("slots")
    costs, found = cost(plan, graph, hardware), answers(OUTPUTS, LABELS, IMAGES)
    for shown in (found, None):
        page.write(tmp_path / "r.html", graph, plan, hardware, costs, {}, METRICS, PROVENANCE,
                   answers=shown)  # fmt: skip
        text = (tmp_path / "r.html").read_text()
        assert ("said 0, is 2" in text) == ("Confusion matrix" in text) == (shown is not None)
        pictures = re.findall(r'<img src="(.*?)"', text)
        assert len(pictures) == (5 if shown else 0)
        assert all(each.startswith("data:image/png;base64,") for each in pictures)
