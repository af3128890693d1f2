"""Training: float, then quantization-aware, repeatable and resumable."""
