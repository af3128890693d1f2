"""docs/importing.md lists what the importers really take."""

from __future__ import annotations

from pipeline.importers import onnx
from tests.importers.float_docs import ONNX, PAGE, current, listed


def test_the_lists_are_current() -> None:
    page = PAGE.read_text()
    assert page == current(page), "run python -m tests.importers.float_docs"
    assert page.count("<!-- torch") == page.count("<!-- onnx") == 2


def test_messages_and_documentation_list_the_same() -> None:
    assert "conv2d" in listed()


def test_every_operator_of_onnx_is_listed() -> None:
    assert {name for operators in ONNX for name in operators} == set(onnx.supported())
