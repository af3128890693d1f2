"""Networks from elsewhere: PyTorch, TensorFlow Lite, ONNX."""
