"""Execution of a network's first layers patch by patch."""
