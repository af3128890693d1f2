"""Stage generate: specialised C from a graph and its plan."""

from pipeline.codegen.generate import generate, outline

__all__ = ["generate", "outline"]
