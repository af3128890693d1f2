"""Kernels of a core with the DSP extension, for steps of ``int8`` that they fit."""
