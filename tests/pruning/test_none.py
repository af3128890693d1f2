from pathlib import Path

import numpy as np
import yaml

from pipeline import config
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.pruning.none import NoPruning
from pipeline.training.environment import Run


def test_it_is_off_by_default_and_changes_nothing() -> None:
    method = config.instantiate(yaml.safe_load(Path("conf/prune/none.yaml").read_text()))
    assert method == NoPruning() and not method.changes
    weights = {"a": np.arange(3)}
    pruned = method.prune(Mnist2kb(), weights, {}, Run())
    assert pruned.weights == weights
    assert pruned.tables == {"layers": [], "steps": [], "epochs": []}
