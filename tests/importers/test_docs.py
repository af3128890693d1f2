"""docs/importing.md lists what the importers really take, and messages do."""

from __future__ import annotations

from pipeline.importers import onnx, torch_operators
from tests.importers.docs import ONNX, PAGE, TORCH, current, names


def test_the_lists_are_current() -> None:
    page = PAGE.read_text()
    assert page == current(page), "run python -m tests.importers.docs"
    assert page.count(": written by python -m tests.importers.docs") == page.count(": end -->") == 3


def test_messages_and_documentation_list_the_same() -> None:
    assert {name for kind in TORCH for name in names(kind)} == set(torch_operators.supported())
    assert {name for operators in ONNX for name in operators} == set(onnx.supported())
