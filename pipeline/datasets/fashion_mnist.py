"""Fashion-MNIST: 70,000 pictures of clothes, 28x28 grey, in MNIST's format (Zalando, 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.datasets import idx
from pipeline.datasets.dataset import FetchedDataset, Split
from pipeline.datasets.sources import DebianPackage, Folder, Mirror
from pipeline.datasets.store import File, Source, listed


@dataclass(frozen=True)
class FashionMnist(FetchedDataset):
    """Fashion-MNIST: 70,000 pieces of clothing, 28x28 pixels in grey.

    Hashes are of the unpacked files: the packages compress them differently."""

    title: ClassVar[str] = "fashion_mnist"
    files: ClassVar[tuple[File, ...]] = listed(
        """
        c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888  train-images-idx3-ubyte
        bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9  train-labels-idx1-ubyte
        5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b  t10k-images-idx3-ubyte
        0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34  t10k-labels-idx1-ubyte
        """
    )
    sources: ClassVar[tuple[Source, ...]] = (
        Folder("/usr/share/datasets/fashion-mnist"),
        Mirror("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion"),
        DebianPackage("dataset-fashion-mnist"),
    )

    def read(self) -> tuple[Split, Split]:
        files = self.fetched()
        return idx.split(files, "train"), idx.split(files, "t10k")
