"""Kernels for cores with the DSP extension: ``affine``'s, and faster ones for whole steps."""

from pipeline.codegen.cortex_m.generate import generate

__all__ = ["generate"]
