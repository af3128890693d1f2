"""C and assembly of kernels that make one row: see ``pipeline/kernels/cortex_m/by_row``."""
