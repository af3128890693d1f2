"""Forms in which parts of a network run: regions, what their steps need, lowering to a plan."""
