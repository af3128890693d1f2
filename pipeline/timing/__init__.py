"""When each step of a plan runs: a deterministic simulation, and what follows from it."""
