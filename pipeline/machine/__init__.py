"""Prove of the linked program, from one traced inference, what holds for every input.

It shares the schema of ``plan.json`` and the ELF with the rest, and runs QEMU as simulations do.
"""
