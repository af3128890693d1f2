"""Moves: one file a form of regions, which proposes them for a network."""
