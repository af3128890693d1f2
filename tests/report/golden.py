"""The maps of ``pages.KINDS`` as pictures without letters, which differ between machines. ``python
-m tests.report.golden`` draws them anew, after a change that is meant."""

import base64
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from tests.report.browser import chromium, opened
from tests.report.pages import KINDS, RAN, made, write

GOLDEN = Path(__file__).parent / "golden"
SIZE = (760, 700)
WORDLESS = """
for (const name of ["fillText", "strokeText"]) CanvasRenderingContext2D.prototype[name] = () => {};
CanvasRenderingContext2D.prototype.measureText = text => ({width: 6 * text.length});
"""

Pixels = npt.NDArray[np.uint8]


def drawn(browser: Any, path: Path) -> Pixels:
    """The map of a page: (h, w, 3)."""
    with opened(browser, path, SIZE, before=WORDLESS) as page:
        uri = page.evaluate("document.getElementById('map').toDataURL()")
    return pixels(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


def pixels(file: io.BytesIO | Path) -> Pixels:
    """On white, where nothing was drawn."""
    image = Image.open(file).convert("RGBA")
    return np.asarray(Image.alpha_composite(Image.new("RGBA", image.size, "white"), image))[
        :, :, :3
    ]


def differing(one: Pixels, other: Pixels) -> float:
    """The share of pixels that one sees a difference of."""
    if one.shape != other.shape:
        return 1.0
    return float((np.abs(one.astype(int) - other).max(axis=2) > 12).mean())


def file(kind: str) -> Path:
    return GOLDEN / f"{kind.replace(' ', '_')}.png"


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    with chromium() as found, tempfile.TemporaryDirectory() as folder:
        for each in KINDS:
            page = Path(folder) / f"{each}.html"
            write(page, *made(each), ran=each in RAN)
            Image.fromarray(drawn(found, page)).save(file(each), optimize=True)
            print(file(each).name)
