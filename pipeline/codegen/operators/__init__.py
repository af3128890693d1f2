"""One file an operator: from a step of the plan to C."""
