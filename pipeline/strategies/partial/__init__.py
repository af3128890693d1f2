"""Pex: execution along channels."""
