import numpy as np
import pytest

from pipeline.datasets import idx
from pipeline.errors import ThimbleError
from tests.datasets import standins


@pytest.mark.parametrize("shape", [(0,), (5,), (3, 2), (2, 3, 4)])
def test_arrays_of_any_shape_are_read(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    assert (idx.parse(standins.idx(array), "file") == array).all()
    assert idx.parse(standins.idx(array), "file").shape == shape


@pytest.mark.parametrize("content", [b"", b"\0\0", b"\0\0\x0d\x01\0\0\0\0", b"\x1f\x8b\x08\0rest"])
def test_other_formats_are_refused_by_name(content: bytes) -> None:
    with pytest.raises(ThimbleError, match="labels is not an IDX file"):
        idx.parse(content, "labels")


@pytest.mark.parametrize("change", [-1, 1])
def test_a_wrong_length_is_noticed(change: int) -> None:
    content = standins.idx(np.zeros((4, 4), np.uint8))
    with pytest.raises(ThimbleError, match="of 16 elements"):
        idx.parse(content[:change] if change < 0 else content + b"!", "images")


def test_a_cut_off_header_is_noticed() -> None:
    with pytest.raises(ThimbleError, match="images is cut off in its header"):
        idx.parse(standins.idx(np.zeros((4, 4), np.uint8))[:9], "images")


def test_a_part_is_images_and_labels() -> None:
    split = idx.split(standins.idx_set(train=12, test=5), "t10k")
    assert split.images.shape == (5, 28, 28, 1)
    assert split.images[:, 0, 0, 0].tolist() == [100, 101, 102, 103, 104]
    assert split.labels.tolist() == [0, 1, 2, 3, 4]


def test_arrays_are_writable() -> None:
    """PyTorch warns of arrays that are not."""
    assert idx.parse(b"\0\0\x08\x01\0\0\0\x02ab", "labels").flags.writeable
