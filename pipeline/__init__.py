"""Thimble's library: graphs, memory plans, generated C and the targets that run it."""
