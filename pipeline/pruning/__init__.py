"""Making a trained network smaller: one method is one file here, one YAML in ``conf/prune``."""
