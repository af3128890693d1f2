"""``model=torch``: the user's own PyTorch network."""

from __future__ import annotations

import importlib
import sys
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from pipeline import given, home
from pipeline.artifacts import Arrays, regular
from pipeline.errors import ThimbleError, said
from pipeline.importers.base import chosen, increasing
from pipeline.importers.torch_chain import chain
from pipeline.importers.torch_export import exported
from pipeline.importers.torch_quantized import is_quantized
from pipeline.models.network import Model, Shape, loaded


class Ended(nn.Module):
    """``network`` ended at the modules in it that ``names`` tells: it gives what these give."""

    def __init__(self, network: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.network = network
        every = [name for name, _ in network.named_modules() if name]
        self.names = chosen(names, every, every)

    def forward(self, *given: torch.Tensor, **named: torch.Tensor) -> Any:
        kept: dict[str, Any] = {}
        with ExitStack() as hooks:
            for name in self.names:
                part = self.network.get_submodule(name)
                keep = part.register_forward_hook(
                    lambda *made, name=name: kept.update({name: made[-1]})
                )
                hooks.enter_context(keep)
            self.network(*given, **named)
        if lacking := [name for name in self.names if name not in kept]:
            raise ThimbleError(f"model.outputs=[{lacking[0]}]: the network never calls it")
        return kept[self.names[0]] if len(kept) == 1 else tuple(kept[name] for name in self.names)


class Ranged(nn.Module):
    """``network`` behind raw values: 0…255 become ``low``…``high``. One of ``signals`` is given
    (n, c, l) for (n, c, 1, l). Several inputs, whose ``shapes`` are channels last, come one by one,
    channels first, or one after the other as (n, elements, 1, 1); ``states`` come as they are, or
    are zeros."""

    def __init__(
        self, network: nn.Module, low: float, high: float, signals: bool = False,
        shapes: Mapping[str, tuple[int, ...]] | None = None, states: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__()
        self.states = states
        self.network, self.signals, self.shapes = network, signals, shapes or {}
        self.low, self.step = low, (high - low) / 255

    def train(self, mode: bool = True) -> Self:
        """Set the mode as any module does; what ``torch.export`` made has one, and says so."""
        with suppress(NotImplementedError):
            super().train(mode)
        return self

    def forward(self, *raw: torch.Tensor) -> torch.Tensor:
        if len(raw) < len(self.shapes):
            sizes = [prod(shape) for name, shape in self.shapes.items() if name not in self.states]
            zeros = [raw[0].new_zeros(len(raw[0]), prod(self.shapes[n])) for n in self.states]
            parts = [*raw[0].flatten(1).split(sizes, 1), *zeros]  # type: ignore[no-untyped-call]
            each = zip(parts, self.shapes.values(), strict=True)
            raw = tuple(part.reshape(-1, *shape).movedim(-1, 1) for part, shape in each)
        fed = len(raw) - len(self.states)
        real = [each * self.step + self.low for each in raw[:fed]] + [*raw[fed:]]
        if self.shapes:
            return self.network(**dict(zip(self.shapes, real, strict=True)))  # type: ignore[no-any-return]
        return self.network(real[0].squeeze(2) if self.signals else real[0])  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TorchModel(Model):
    """The network that ``factory`` makes.

    Attributes:
        inputs: instead of ``input_shape``, where there are several: for each the name of the
            module's argument, and (h, w, c), (l, c) or (n,). Data has all one after the other.
        state: likewise, arguments that a call doesn't get: they are the last results of the call
            before, in turn, and begin as zeros.
        factory: ``package.module:Net``, a class or function, found from the folder in which the
            command is typed.
        kwargs: its arguments.
        outputs: the names of the modules at whose results the network ends; empty: its own end.
        state_dict: weights: a .pt or .pth file with a state dict of tensors, or an .npz.
        input_range: what the network takes for the raw values 0 and 255 of the data. The network
            does the rest of its normalization, if any, itself.
        step: a call is one step of a sequence: what recurrent layers keep stays for the next.
    """

    input_shape: Shape = (0, 0, 0)
    factory: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    state_dict: str = ""
    input_range: tuple[float, float] = (0.0, 1.0)
    inputs: tuple[tuple[Any, ...], ...] = ()
    outputs: tuple[str, ...] = ()
    step: bool = False
    state: tuple[tuple[Any, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.inputs or self.state:
            sizes = [n for shape in self.shapes.values() for n in shape or (0,)]
            fit = bool(self.inputs) and all(isinstance(n, int) and n > 0 for n in sizes)
            if not fit or len(self.shapes) < max(2, len(self.inputs) + len(self.state)):
                raise ThimbleError(
                    "model.inputs: give at least two by their names, such as "
                    "[[image,28,28,1],[speed,3]], or one and model.state, such as [[h,64]]; one "
                    "without state is model.input_shape=[28,28,1]"
                )
            elements = sum(prod(shape) for _, *shape in self.inputs)
            object.__setattr__(self, "input_shape", (1, 1, elements))
        super().__post_init__()

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of several inputs, states behind them, by name."""
        return {name: tuple(shape) for name, *shape in (*self.inputs, *self.state)}

    @property
    def states(self) -> Sequence[str]:
        return [name for name, *_ in self.state]

    @property
    def examples(self) -> Mapping[str, torch.Tensor]:
        each = {k: torch.zeros(1, shape[-1], *shape[:-1]) for k, shape in self.shapes.items()}
        return each or super().examples

    @property
    def trained(self) -> bool:
        return bool(self.state_dict) or is_quantized(self._made())

    @property
    def takes(self) -> tuple[float, float]:
        return increasing(self.input_range)

    def build(self) -> nn.Module:
        """Fresh or, with ``state_dict``, the given weights."""
        network = self._made().float()
        if self.state_dict:
            loaded(network, state_of(Path(self.state_dict)))
        if self.outputs:
            network = Ended(network, self.outputs)
        image = Ranged(network, *self.takes, shapes=self.shapes, states=self.states).eval()
        signal = Ranged(network, *self.takes, signals=self.input_shape[0] == 1)
        return signal if signal.signals and not self._runs(image) and self._runs(signal) else image

    def _runs(self, network: nn.Module) -> bool:
        try:
            return self._tried(network) is not None
        except ThimbleError:
            return False

    widened: ClassVar[str] = "give it {}"

    @property
    def gives(self) -> int:
        """Count what the network gives for an input of zeros."""
        return int(self._tried(self.build().eval())[0].numel())

    def as_chain(self, network: nn.Module) -> nn.Sequential:
        """Return the user's own layers, behind the pool in which pixels arrive."""
        assert isinstance(network, Ranged)
        return chain(self.factory, network.network, self.takes)

    def probe(self) -> None:
        """Refuse what cannot be quantized later, before anything is trained."""
        with torch.random.fork_rng(devices=[]):
            network = self.build().eval()
        self._tried(network)
        exported(self.factory, network, self.examples, self.step, self.states)

    def _tried(self, network: nn.Module) -> torch.Tensor:
        """Return what it gives for an input of zeros."""
        try:
            with torch.no_grad():
                result: torch.Tensor = network(self.example())
        except Exception as error:  # the user's forward may raise anything
            shape = ",".join(map(str, self.input_shape))
            what = f"{self.factory} with model.input_shape=[{shape}], height, width and channels"
            raise ThimbleError(f"{what}: {said(error)}") from None
        return result

    def _made(self) -> nn.Module:
        module_name, _, name = self.factory.partition(":")
        if not module_name or not name:
            raise ThimbleError(
                f"model.factory={self.factory or '(none)'}: give package.module:Net, found from "
                "the folder in which the command is typed"
            )
        folder = str(home.typed())
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            make = getattr(importlib.import_module(module_name), name)
        except ModuleNotFoundError as error:
            raise ThimbleError(
                f"model.factory={self.factory}: there is no module {error.name} in {folder}"
            ) from None
        except AttributeError:
            raise ThimbleError(f"model.factory: {module_name} has no {name!r}") from None
        except Exception as error:  # the user's module may raise anything
            raise ThimbleError(f"model.factory: importing {module_name}: {said(error)}") from None
        try:
            network = make(**{str(key): value for key, value in self.kwargs.items()})
        except Exception as error:  # so may its class
            raise ThimbleError(f"model.factory: making {self.factory}: {said(error)}") from None
        if not isinstance(network, nn.Module):
            raise ThimbleError(
                f"model.factory={self.factory} gives a {type(network).__name__}, not an nn.Module"
            )
        return network


def state_of(path: Path) -> Arrays:
    """Return the arrays in a state dict file; nothing in it is run.

    Raises:
        ThimbleError: no such file, or something else than tensors by name.
    """
    if regular(path, f"model.state_dict={path}").suffix == ".npz":
        return given.read(path, "model.state_dict")
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ThimbleError(f"model.state_dict={path} does not exist") from None
    except Exception as error:  # pickle and zip raise whatever a damaged file makes them
        kind = "not" if zipfile.is_zipfile(path) else "not, or a damaged"
        raise ThimbleError(
            f"model.state_dict={path} is {kind} a state dict saved by torch.save "
            f"({type(error).__name__}): save model.state_dict(), not the model"
        ) from None
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not all(
        isinstance(value, torch.Tensor) for value in found.values()
    ):
        raise ThimbleError(f"model.state_dict={path} does not hold tensors by name")
    sizes = (value.numel() * max(4, value.element_size()) for value in found.values())
    given.check(sum(sizes), f"model.state_dict={path}", f"{len(found)} tensors")
    return {str(name): _numpy(value, f"{name} in {path}") for name, value in found.items()}


def _numpy(value: torch.Tensor, what: str) -> np.ndarray[Any, Any]:
    """The values of a dense or sparse tensor; all floats become float32, which holds bfloat16."""
    try:
        dense = value.detach().to_dense()
        if dense.is_complex():
            raise TypeError
        return np.asarray((dense.float() if dense.is_floating_point() else dense).numpy())
    except (RuntimeError, TypeError):  # so are those that are quantized, or have no data
        raise ThimbleError(f"model.state_dict: {what} is {value.dtype} on {value.device}: save "
                           "float32, of the network before it was quantized") from None  # fmt: skip
