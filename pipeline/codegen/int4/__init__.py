"""Kernels for pixels that lie anywhere, down to nibbles: found through lines and tables."""
