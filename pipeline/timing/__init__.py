"""Times of each step of a plan: a deterministic simulation, and figures derived from it."""
