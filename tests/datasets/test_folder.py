import os
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipeline import given
from pipeline.artifacts import Arrays
from pipeline.datasets.folder import FolderDataset
from pipeline.errors import ThimbleError

CLASSES = ("ant", "bee", "cow")


def picture(path: Path, colour: tuple[int, int, int], size: tuple[int, int] = (6, 4)) -> None:
    """``size`` is (width, height), as Pillow has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


def fill(folder: Path, count: int, first: int = 0) -> Path:
    """``count`` pictures of each class; the red of a picture is its class, its green its number."""
    for label, name in enumerate(CLASSES):
        for index in range(first, first + count):
            picture(folder / name / f"{index:03}.png", (label, index, 0))
    return folder


def refused(folder: Path, said: str, **options: object) -> None:
    with pytest.raises(ThimbleError, match=said):
        FolderDataset(path=str(folder), **options).arrays()  # type: ignore[arg-type]


def greens(arrays: Arrays, part: str) -> list[int]:
    return sorted(arrays[f"{part}_images"][:, 0, 0, 1].tolist())


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    """Files that are no images are left out."""
    fill(tmp_path, 10)
    (tmp_path / "ant" / "Thumbs.db").write_bytes(b"x")
    (tmp_path / "README").write_text("mine")
    (tmp_path / ".cache").mkdir()
    arrays = FolderDataset(path=str(tmp_path)).arrays()
    assert arrays["train_images"].shape == (22, 4, 6, 3)
    assert len(arrays["test_labels"]) == 6 and len(arrays["validation_labels"]) == 2
    for part in ("train", "validation", "test"):
        assert (arrays[f"{part}_images"][:, 0, 0, 0] == arrays[f"{part}_labels"]).all()
    everything = [
        green for part in ("train", "validation", "test") for green in greens(arrays, part)
    ]
    assert sorted(everything) == sorted([*range(10)] * 3)
    data = FolderDataset(path=str(tmp_path), validation=4, test=5)
    first, again = data.arrays(), data.arrays()
    assert all((first[key] == again[key]).all() for key in first)
    assert [len(first[f"{p}_labels"]) for p in ("train", "validation", "test")] == [21, 4, 5]
    assert len(set(first["train_labels"])) == 3


def test_folders_for_the_parts(tmp_path: Path) -> None:
    for index, part in enumerate(("train", "validation", "test")):
        fill(tmp_path / part, 3, first=10 * index)
    arrays = FolderDataset(path=str(tmp_path)).arrays()
    assert greens(arrays, "train") == sorted([0, 1, 2] * 3)
    assert greens(arrays, "validation") == sorted([10, 11, 12] * 3)
    assert greens(arrays, "test") == sorted([20, 21, 22] * 3)
    shutil.rmtree(tmp_path / "validation")  # it is held out of the training images
    fill(tmp_path / "train", 10)
    arrays = FolderDataset(path=str(tmp_path)).arrays()
    assert greens(arrays, "test") == sorted([20, 21, 22] * 3)
    assert len(arrays["validation_labels"]) == 3 and len(arrays["train_labels"]) == 27


def test_crop_keeps_the_centre_and_stretch_everything(tmp_path: Path) -> None:
    wide = np.zeros((4, 12, 3), np.uint8)
    wide[:, :4], wide[:, 8:] = 100, 200
    (tmp_path / "a").mkdir()
    for index in range(3):
        Image.fromarray(wide).save(tmp_path / "a" / f"{index}.png")
    crop, stretch = (
        FolderDataset(path=str(tmp_path), shape=(4, 4, 1), resize=how).arrays()["train_images"][0]
        for how in ("crop", "stretch")
    )
    assert crop.shape == (4, 4, 1) and crop.max() == 0
    assert stretch[0, 0, 0] > 60 and stretch[0, 3, 0] > 150


def test_pictures_become_grey_or_coloured_and_are_turned_as_the_camera_says(tmp_path: Path) -> None:
    fill(tmp_path / "set", 2)
    Image.new("L", (6, 4), 7).save(tmp_path / "set" / "ant" / "grey.png")
    Image.new("RGBA", (6, 4), (0, 1, 0, 128)).save(tmp_path / "set" / "ant" / "seen-through.png")
    for channels in (1, 3):
        data = FolderDataset(path=str(tmp_path / "set"), shape=(4, 6, channels)).arrays()
        assert data["train_images"].shape[1:] == (4, 6, channels)
    image = Image.new("RGB", (8, 4))
    exif = image.getexif()
    exif[0x0112] = 6  # a quarter turn
    (tmp_path / "turned" / "a").mkdir(parents=True)
    for index in range(3):
        image.save(tmp_path / "turned" / "a" / f"{index}.jpg", exif=exif)
    turned = FolderDataset(path=str(tmp_path / "turned")).arrays()["train_images"]
    assert turned.shape[1:] == (8, 4, 3)


def test_arrays_of_bytes_and_floats_are_taken(tmp_path: Path) -> None:
    """Spectrograms have any number of channels and no third axis when it is one."""
    for label, name in enumerate(CLASSES):
        (tmp_path / name).mkdir()
        for index in range(4):
            np.save(tmp_path / name / f"{index}.npy", np.full((49, 10), label, np.uint8))
    arrays = FolderDataset(path=str(tmp_path), shape=(49, 10, 1)).arrays()
    assert (arrays["train_images"][:, 5, 5, 0] == arrays["train_labels"]).all()
    for n in range(12):
        for name in ("a", "b"):
            (tmp_path / "set" / name).mkdir(exist_ok=True, parents=True)
            np.save(tmp_path / "set" / name / f"{n}.npy", np.linspace(0, 1, 640))
    parts = FolderDataset(path=str(tmp_path / "set"), shape=(1, 1, 640)).arrays()
    assert parts["test_images"].shape[1:] == (1, 1, 640)
    assert parts["test_images"][0, 0, 0].tolist() == np.rint(np.linspace(0, 255, 640)).tolist()


def test_labels_are_those_of_the_training_folders(tmp_path: Path) -> None:
    fill(tmp_path / "train", 3)
    picture(tmp_path / "test" / "cow" / "1.png", (2, 0, 0))
    assert FolderDataset(path=str(tmp_path)).arrays()["test_labels"].tolist() == [2]
    picture(tmp_path / "test" / "dog" / "1.png", (3, 0, 0))
    refused(tmp_path, r"test/dog: no training images have this class")


def test_wrong_folders_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=r"data=folder needs data\.path"):
        FolderDataset().arrays()
    refused(tmp_path / "absent", r"data\.path=.*absent is no folder")
    refused(tmp_path, "has 0 folders: one for each class")
    (tmp_path / "ant").mkdir()
    refused(tmp_path, r"ant has no images: \.png")
    (tmp_path / "test").mkdir()
    refused(tmp_path, "has test/ but no train/")
    for index in range(257):
        (tmp_path / "many" / f"{index:03}").mkdir(parents=True)
    refused(tmp_path / "many", "has 257 folders: one for each class is needed, up to 256")


ODD = (
    (np.full((4, 6, 3), 2.5), r"odd\.npy is float64 of 2\.5…2\.5; uint8 of 0…255 or"),
    (np.zeros((1, 4, 6, 3), np.uint8), r"odd\.npy is uint8 of 1x4x6x3: \(h, w, c\), "),
    (np.zeros((3, 4, 6), np.uint8), r"odd\.npy is 3x4x6, not 4x6x3: their channels come"),
    (np.zeros((4, 5, 3), np.uint8), r"odd\.npy is 4x5x3, not 4x6x3"),
    (np.array([{}]), r"odd\.npy .*holds no plain arrays"),
)


def test_damaged_and_odd_images_are_one_line(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    odd = tmp_path / "bee" / "odd.npy"
    for array, said in ODD:
        np.save(odd, array, allow_pickle=True)
        refused(tmp_path, said)
    with odd.open("wb") as file:
        np.savez(file, image=np.zeros((4, 6, 3), np.uint8))
    refused(tmp_path, r"odd\.npy is a zip, as np.savez makes them: save each")
    np.save(odd, np.zeros((4, 5, 3), np.uint8))
    odd.write_bytes(odd.read_bytes()[:-9])
    refused(tmp_path, r"odd\.npy is damaged, or holds no plain arrays")
    header = {"descr": "|u1", "fortran_order": False, "shape": (10**6, 10**6, 1)}
    with odd.open("wb") as stream:  # it claims more than it has
        np.lib.format.write_array_header_1_0(stream, header)
    refused(tmp_path, r"odd\.npy is damaged")
    odd.unlink()
    for name in ("pipe.npy", "pipe.png"):
        os.mkfifo(pipe := tmp_path / "bee" / name)
        refused(tmp_path, rf"{name} is a pipe or a device: give a file")
        pipe.unlink()
    cut = tmp_path / "bee" / "000.png"
    cut.write_bytes(cut.read_bytes()[:40])
    refused(tmp_path, r"bee/000\.png cannot be read")


def test_wrong_options_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 10)
    refused(tmp_path, r"data\.shape=\[4, 6\] must be \[height,width,channels\]", shape=(4, 6))
    refused(tmp_path, "pictures have 1 or 3 channels", shape=(4, 6, 2))
    refused(tmp_path, "is 4x6x3, not 5x6x3", shape=(5, 6, 3), resize="none")
    refused(tmp_path, r"data\.validation=30 of 24 training images", validation=30)
    refused(tmp_path, r"data\.test=30 of 30 training images", test=30)
    monkeypatch.setattr(given, "MOST_BYTES", 1000)
    refused(tmp_path, r"30 images of 4x6x3, .*use fewer or smaller images")


def png_of(width: int, height: int) -> bytes:
    """A picture that says that it is so large; there is nothing in it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(header)) + chunk
    return start + struct.pack(">I", zlib.crc32(chunk)) + struct.pack(">I", 4) + b"IDAT"


@pytest.mark.parametrize("side", [10_000, 60_000])
def test_giant_pictures_are_refused_by_their_headers(tmp_path: Path, side: int) -> None:
    """Before the first is decoded: the last one is named."""
    fill(tmp_path, 2)
    last = sorted(each for each in tmp_path.iterdir())[-1] / "zz.png"
    last.write_bytes(png_of(side, side))
    refused(tmp_path, r"zz\.png has .* pixels.*, 89,478,485 are")
