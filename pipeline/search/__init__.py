"""Searches that propose regions: in which order, in which form, as little as possible at once."""
