"""Portable C over byte-aligned affine buffers: any int8 network, any plan of loops and slices."""

from pipeline.codegen.int8.generate import generate

__all__ = ["generate"]
