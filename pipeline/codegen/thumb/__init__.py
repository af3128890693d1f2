"""Write calls of the kernels in Thumb assembly, one module an operator."""
