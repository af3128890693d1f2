"""Compilers, simulators and boards: from generated C to measured figures."""
