"""Chains in place: in which order pixels are computed, and where each lies."""
