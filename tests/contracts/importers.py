"""What the contract of importers tries on each: a small network, one with an operator that is not
supported, and the file that may be damaged. An importer is listed in ``SAMPLES`` by its class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import helper
from torch import nn

from pipeline.graph.graph import Graph
from pipeline.importers.base import Imported
from pipeline.importers.onnx import Onnx
from pipeline.importers.tflite import TFLite
from pipeline.importers.torch_model import TorchModel
from pipeline.quantize.int8 import Int8
from tests.importers.onnx_models import model, one, weights
from tests.importers.tflite_networks import network
from tests.importers.tflite_writer import Writer


@dataclass(frozen=True)
class Sample:
    """Of one importer.

    Attributes:
        model: what the user's file ``content`` holds, once it is written into ``folder``.
        small: a network of a few operators.
        unsupported: one with ``operator``, which no rule covers.
    """

    load: Callable[[Path], Any]
    small: bytes
    unsupported: bytes
    operator: str
