"""C for 4-bit networks with power-of-two scales: pixels anywhere, found through tables."""

from pipeline.codegen.int4.generate import generate

__all__ = ["generate"]
