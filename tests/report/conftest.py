from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found
