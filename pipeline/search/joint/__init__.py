"""The joint schedule: rows, in place where it saves, whole tensors where segments meet."""
