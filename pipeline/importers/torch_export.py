"""A PyTorch module to a float graph, through ``torch.export``.

The exported program is brought to core ATen, but for the operators that ``torch_operators`` knows
by themselves. What depends on weights alone is computed here, whatever the operators.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.fx import Node as FxNode

from pipeline.errors import ThimbleError, said
from pipeline.importers.builder import Builder
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.layout import Moves, Value
from pipeline.importers.scales import PIXEL
from pipeline.importers.torch_call import Call, Stepped
from pipeline.importers.torch_nodes import is_part, label, module_name, named, where
from pipeline.importers.torch_operators import KEPT, OPERATORS
from pipeline.importers.torch_quantized import stepped
from pipeline.importers.unsupported import Missing, instead, unsupported

Examples = torch.Tensor | Mapping[str, torch.Tensor]
"""One input (1, …), images (1, c, h, w); of several each by its name, as the module takes them."""


def exported(
    name: str, module: nn.Module, example: Examples, step: bool = False,
    states: Sequence[str] = (),
) -> FloatGraph:  # fmt: skip
    """Return the float graph of ``module`` in evaluation mode; ``step``: see ``Builder``.

    ``states``: of several inputs those that are, in the next call, the last results in turn.

    Raises:
        ThimbleError: the module cannot be traced, or has an operator that is not supported: its
            name, where it is, and what is.
    """
    examples = {"input": example} if isinstance(example, torch.Tensor) else example
    program = traced(name, module.eval(), *examples.values())
    inputs, (first, *others) = list(examples), examples.values()
    try:
        return _imported(name, program, inputs, step, states)
    except Moves:
        if not others and (first.ndim == 3 or _transposes_first(program)):
            with contextlib.suppress(ThimbleError):
                return _imported(name, program, inputs, step, states, last=True)
        return _imported(name, program, inputs, step, states, moving=True)


def _transposes_first(program: torch.export.ExportedProgram) -> bool:
    """Check whether the network reads its input (1, h, w, c) only transposed to (1, c, h, w)."""
    inputs = [node for node in program.graph.nodes if node.name in
              program.graph_signature.user_inputs]  # fmt: skip
    users = [user for node in inputs for user in node.users]
    return all(
        str(user.target) == "aten.permute.default" and list(user.args[1]) == [0, 3, 1, 2]
        for user in users
    )


def traced(name: str, module: nn.Module, *examples: torch.Tensor) -> torch.export.ExportedProgram:
    with _quiet():
        try:
            program = torch.export.export(module, examples)
            if _is_plain(program):
                return program
            table: Any = torch.export.default_decompositions()
            for operator in KEPT:
                table.pop(operator, None)
            whole: torch.export.ExportedProgram = program.run_decompositions(table)
            return whole
        except ThimbleError:
            raise
        except Exception as error:  # whatever the user's forward, or PyTorch's tracer, raises
            shapes = ", ".join(str(list(each.shape)) for each in examples)
            raise ThimbleError(
                f"{name}: torch.export cannot trace it with an input of {shapes}: {said(error)}"
            ) from None


def _is_plain(program: torch.export.ExportedProgram) -> bool:
    """Check whether every operator is known undecomposed, and none writes to its input."""
    calls = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    return all(name in OPERATORS for name in calls)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch.export warns about its own use of PyTorch, and prints graphs that it gives up."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


def _imported(
    name: str, program: torch.export.ExportedProgram, inputs: list[str], step: bool,
    states: Sequence[str], last: bool = False, moving: bool = False,
) -> FloatGraph:  # fmt: skip
    builder = Builder(name, moving, step)
    values, known, missing = dict[str, Any](), dict[str, Value](), Missing()
    sources = iter(inputs)
    for node in program.graph.nodes:
        if node.op != "output":
            builder.here, builder.label = where(node), label(node)
        if node.op == "placeholder":
            held = constant(program, node.name)
            if held is not None:
                values[node.name] = held
            else:
                shape = tuple(int(n) for n in node.meta["val"].shape)
                if not shape or shape[0] != 1:
                    raise ThimbleError(f"{name}: its input {list(shape)} has no batch axis of 1")
                signal = len(shape) == 3 and len(inputs) > 1
                source = next(sources)
                values[node.name] = known[source] = builder.source(source, shape, last or signal)
        elif node.op == "get_attr":
            values[node.name] = getattr(program.graph_module, str(node.target))
        elif node.op == "call_function" and node.users:  # others are checks of PyTorch's
            try:
                if missing.lost.isdisjoint(node.all_input_nodes):
                    values[node.name] = _called(builder, node, values)
                    continue
                _judge(builder, node)
            except ThimbleError as error:
                if isinstance(error, Moves) and not moving:
                    raise
                missing.add(named(node)[0], builder.here, error)
            if made := _assumed(builder, node, last):
                values[node.name] = made
            else:
                missing.lost.add(node)
        elif node.op == "output":
            missing.checked()
            results = [values.get(str(each)) for each in program.graph_signature.user_outputs]
            found = [result for result in results if isinstance(result, Value)]
            if not found or len(found) < len(results):
                raise ThimbleError(f"{name}: an output does not depend on its input")
            fed = [each for each in inputs if each not in states]
            if builder.given:
                builder.given = {**dict.fromkeys(fed, PIXEL), **builder.given}
            if len(found) <= len(states):
                raise ThimbleError(
                    f"{name} gives {len(found)} results: give those of the call, and behind them "
                    f"what is kept of each of model.state, {', '.join(states)}"
                )
            for read, made in zip(states, found[len(found) - len(states) :], strict=True):
                builder.label = f"{read}.kept"
                builder.state(known[read], made)
            return builder.graph(fed, found[: len(found) - len(states)])
    raise ThimbleError(f"{name}: has no output")


def _judge(builder: Builder, node: FxNode) -> None:
    """Refuse what is not known, by its own name or its module's."""
    if str(node.target) not in OPERATORS or instead(module_name(node)):
        name, said = named(node)
        raise builder.refuse(f"{said} is {unsupported(name)}")


def _assumed(builder: Builder, node: FxNode, last: bool) -> Value | list[Value] | None:
    """Take what ``node`` makes for what PyTorch says of it, whatever its operator is."""
    shapes = [tuple(map(int, each.shape)) for each in _flat(node.meta.get("val"))
              if isinstance(each, torch.Tensor)]  # fmt: skip
    if any(shape[:1] != (1,) or len(shape) > 4 for shape in shapes):
        return None
    made = [builder.source(f"{node.name}.{n}", shape, last) for n, shape in enumerate(shapes)]
    return made if isinstance(node.meta.get("val"), (list, tuple)) else made[0] if made else None


def _flat(item: Any) -> Iterator[Any]:
    if isinstance(item, (tuple, list)):
        for each in item:
            yield from _flat(each)
    elif item is not None:
        yield item


def constant(program: torch.export.ExportedProgram, placeholder: str) -> torch.Tensor | None:
    """The parameter, buffer or constant that ``placeholder`` stands for; None for an input."""
    signature = program.graph_signature
    for names in (signature.inputs_to_parameters, signature.inputs_to_buffers):
        if placeholder in names:
            target = names[placeholder]
            held = program.state_dict.get(target, program.constants.get(target))
            assert isinstance(held, torch.Tensor)
            return held.detach()
    target = signature.inputs_to_lifted_tensor_constants.get(placeholder, "")
    found = program.constants.get(target)
    return found.detach() if isinstance(found, torch.Tensor) else None


def _called(builder: Builder, node: FxNode, values: dict[str, Any]) -> Any:
    def known(item: Any) -> Any:
        return values[item.name] if isinstance(item, FxNode) else item

    args = torch.fx.node.map_aggregate(node.args, known)
    kwargs = torch.fx.node.map_aggregate(dict(node.kwargs), known)
    if not any(isinstance(each, Value) for each in _flat([args, list(kwargs.values())])):
        plain = torch.fx.node.map_aggregate(
            args, lambda each: each.values if isinstance(each, Stepped) else each
        )
        with torch.no_grad():
            made = node.target(*plain, **kwargs)  # type: ignore[operator]
        return stepped(str(node.target), made, args)
    _judge(builder, node)
    shown = next(_flat(node.meta.get("val")), None)
    shape = tuple(int(n) for n in shown.shape) if isinstance(shown, torch.Tensor) else ()
    try:
        return OPERATORS[str(node.target)](Call(builder, args, kwargs, shape))
    except ThimbleError as error:
        another_order = isinstance(error, Moves) and not builder.moving  # is tried next
        if another_order or not is_part(node):
            raise
        name, said = named(node)
        raise builder.refuse(f"{said} is {unsupported(name)}") from None
