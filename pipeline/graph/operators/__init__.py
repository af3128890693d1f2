"""One file an operator."""
