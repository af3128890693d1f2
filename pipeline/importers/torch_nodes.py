"""Names of the nodes of an exported program, and where they are in the user's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from torch.fx import Node as FxNode

from pipeline.importers.torch_operators import supported
from pipeline.importers.unsupported import instead

ITEM = "<built-in function getitem>"
"""One of several results."""
HERE = Path(__file__).parent
AROUND = "torch_model.Ranged"
"""The module that the user's is in, of which the user knows nothing."""


def where(node: FxNode) -> str:
    """The module's path in the network, its class if it is PyTorch's, the line of the source."""
    path, module = _module_path(node), module_name(node)
    trace = str(node.meta.get("stack_trace") or "")
    lines = re.findall(r'File "([^"]+)", line (\d+)', trace)
    own = [(file, line) for file, line in lines
           if "site-packages/torch/" not in file and Path(file).parent != HERE]  # fmt: skip
    place = f"{Path(own[-1][0]).name}:{own[-1][1]}" if own else ""
    about = ", ".join(part for part in (module and f"nn.{module}", place) if part)
    return f"{path} ({about})" if path and about else path or about or str(node.name)


def label(node: FxNode) -> str:
    """The name of what the node becomes: its module's path, and in the user's own its operator."""
    made = node.all_input_nodes[0] if str(node.target) == ITEM else node
    own = "" if module_name(node) or node.op != "call_function" else operator_name(made)
    return ".".join(filter(None, (_module_path(node), own))) or str(node.name)


def named(node: FxNode) -> tuple[str, str]:
    """Return the name the user knows of what ``node`` is, or is part of, and that in a sentence."""
    name, module = operator_name(node), module_name(node)
    return (module, f"nn.{module}") if instead(module) else (name, f"the operator {name}")


def is_part(node: FxNode) -> bool:
    """Check whether ``node`` is one of the steps of an operator, or of a module, that is not
    supported as a whole: what is wrong with the step says nothing then."""
    taken_apart = operator_name(node) not in (*supported(), ITEM)
    return taken_apart or bool(instead(module_name(node)))


def operator_name(node: FxNode) -> str:
    """Return the name in the user's program, before it was taken apart; ``relu`` for ``relu_``."""
    target = str((node.meta.get("from_node") or [node])[0].target)
    return target.removeprefix("aten.").rpartition(".")[0].rstrip("_") or target


def module_name(node: FxNode) -> str:
    """Return the class of PyTorch's own modules in which the node is; "" for the user's."""
    path, _, name = str(_stack(node)[1]).rpartition(".")
    return name if path.startswith("torch.nn.modules.") else ""


def _module_path(node: FxNode) -> str:
    """Return the path in the user's network."""
    path = str(_stack(node)[0])
    return path.partition(".")[2] if AROUND in str(_stack(node, 0)[1]) else path


def _stack(node: FxNode, index: int = -1) -> tuple[Any, Any]:
    """Path and class of the innermost module, or of another one."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return stack[index][:2] if stack else ("", "")
