"""One module an operator: each writes the calls of its fast kernels (``pipeline.kernels``)."""
