"""Stage generate: specialised C from a graph and its plan."""

from pipeline.codegen.generate import generate

__all__ = ["generate"]
