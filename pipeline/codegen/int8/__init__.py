"""Kernels over bytes at affine addresses: any int8 network, any plan of loops and slices."""
