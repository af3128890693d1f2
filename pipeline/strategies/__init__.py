"""Strategies: (graph, hardware) -> plan. One file each; nothing after ``schedule`` knows which."""
