"""Kernels in Thumb-1 assembly: one module an operator writes their calls."""
