"""How parts of a network run: regions, what their steps need, and their lowering to a plan."""
