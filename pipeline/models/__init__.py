"""Networks in plain PyTorch: one network is one file here, one YAML in ``conf/model``."""
