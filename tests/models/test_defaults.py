"""A model may bring the defaults of other groups; what is typed comes first."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from pipeline.runner.options import checked
from pipeline.runner.schema import CODE_GROUPS, composed
from tests.tiers import quick

GROUPS = ("data", "train", "prune", "quantize", "strategy")
MEMBERS = sorted(
    path.stem
    for path in Path("conf/model").glob("*.yaml")
    if "defaults: [/untrained, _self_]" in path.read_text()
)


def chosen(*overrides: str) -> list[str]:
    config = composed(*overrides)
    return [config[group].name for group in GROUPS]


@pytest.mark.parametrize("name", quick(3, MEMBERS, ci=4))
def test_members_need_no_data_set(name: str) -> None:
    config = composed(f"model={name}")
    assert config.model.name == name
    assert " ".join(config[group].name for group in GROUPS) == "none random none int8 ordinary"
    for group in CODE_GROUPS:
        checked(group, OmegaConf.to_container(config[group], resolve=True))


def test_what_is_typed_comes_first_then_an_experiment_then_the_model() -> None:
    """The default model is trained."""
    assert len(MEMBERS) >= 26
    assert chosen() == ["mnist", "paper_quick", "none", "int4", "herringbone"]
    typed = chosen("model=resnet8", "data=cifar10", "train=float", "prune=magnitude")
    assert typed == ["cifar10", "float", "magnitude", "int8", "ordinary"]
    assert chosen("strategy=naive", "model=res15")[-1] == "naive"
    assert chosen("experiment=gural_mnist", "model=resnet8")[1] == "released"


def test_images_in_folders_get_the_models_shape() -> None:
    config = composed("model=mobilenet_v1_vww", "data=folder", "data.path=x")
    assert config.data.shape == [96, 96, 3]
    del config.model["input_shape"]  # a network from a file has none in the config
    assert config.data.shape == []
