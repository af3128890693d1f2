"""One module a family of operators: each writes the calls of its kernels (``pipeline.kernels``)."""
