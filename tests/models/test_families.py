"""What the published counts do not show: other sizes, and sizes that can't be."""

import pytest
import torch
from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.alexnet import AlexNet
from pipeline.models.ds_cnn import DsCnn
from pipeline.models.lenet5 import LeNet5
from pipeline.models.mobilenet_v1 import MobileNetV1
from pipeline.models.mobilenet_v2 import MobileNetV2
from pipeline.models.network import Model
from pipeline.models.res import Res
from pipeline.models.resnet8 import ResNet8
from pipeline.models.vgg16 import Vgg16
from tests.models.counting import count, count_module, member, on_meta


@pytest.mark.parametrize(
    "model",
    [
        MobileNetV1((33, 65, 1), 5, 0.125),
        MobileNetV2((47, 96, 4), 3, 0.35, True),
        Res((101, 40, 1), pool=(4, 3)),
        DsCnn((98, 40, 2), 7, (8, 12), (9, 5), (3, 2), 2),
        ResNet8((20, 36, 1), 4, (4, 8)),
        LeNet5((32, 48, 3), 6, "relu"),
        AlexNet((67, 80, 1), 9),
        Vgg16((32, 64, 1), 2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_rectangles_and_other_sizes(model: Model) -> None:
    assert count(model).output == (1, model.classes)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Res(pool=(50, 1)), r"model\.pool=\[50, 1\] is larger than the 49x10"),
        (LeNet5((8, 28, 1)), "at least 12x12 pixels, not 8x28"),
        (AlexNet((66, 227, 3)), "at least 67x67"),
        (Vgg16((31, 32, 3)), "at least 32x32 pixels, not 31x32"),
    ],
    ids=lambda item: type(item).__name__,
)
def test_images_that_are_used_up_are_one_line(model: Model, message: str) -> None:
    with pytest.raises(ThimbleError, match=message):
        model.build()


def test_the_least_images_work() -> None:
    assert count(AlexNet((67, 67, 3))).output == (1, 1000)
    assert count(LeNet5((12, 12, 1))).output == (1, 10)


def test_a_network_without_channels_is_one_line() -> None:
    with pytest.raises(ThimbleError, match=r"model\.channels=\[\]"):
        DsCnn(channels=())


def test_res15_reaches_further_every_three_convolutions() -> None:
    layers = [m for m in member("res15").build().modules() if isinstance(m, nn.Conv2d)]
    assert [m.dilation[0] for m in layers] == [1, 1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 8, 16]


def test_ds_cnn_pads_as_tensorflow() -> None:
    """(left, right, top, bottom): 49 frames to 25, 10 coefficients to 5; or all kept."""
    assert member("ds_cnn_s").padding == (1, 1, 4, 5)  # type: ignore[attr-defined]
    assert member("micronet_kws_l").padding == (1, 2, 4, 5)  # type: ignore[attr-defined]


def test_pex_halves_the_image_in_the_first_projection() -> None:
    """Where table 3's 226 kB of partial execution come from: 3x224x224 + 2x112x112 + 16x56x56."""
    shapes = []
    network = MobileNetV2(early_downsampling=True).build().eval()
    for block in network.get_submodule("blocks")[:3]:
        block.register_forward_hook(lambda _, __, output: shapes.append(tuple(output.shape[1:])))
    network(torch.zeros(1, 3, 224, 224))
    assert shapes == [(16, 56, 56), (24, 56, 56), (24, 56, 56)]
    assert 3 * 224**2 + 2 * 112**2 + 16 * 56**2 == 225_792


@pytest.mark.parametrize(
    ("modified", "in_patches", "in_all"), [(False, 0.306, 0.093), (True, 0.389, 0.112)]
)
def test_pex_overheads_of_patches(modified: bool, in_patches: float, in_all: float) -> None:
    """Table 3 gives the overhead of patches twice: in the layers up to the fourth block, in all.
    The ratio tells the kernel of the modified projection: 1x1 would make 0.100 of 0.389.
    """
    model = MobileNetV2(early_downsampling=modified)
    network, example = on_meta(model)
    patched = nn.Sequential(network.get_submodule("stem"), network.get_submodule("blocks")[:4])
    share = count_module(patched, example).macs / count(model).macs
    assert round(share * in_patches, 3) == pytest.approx(in_all, abs=1e-3)
