"""Kernels for cores with the DSP extension: ``int8``'s, and faster ones for whole steps."""

from pipeline.codegen.cortex_m.generate import generate

__all__ = ["generate"]
