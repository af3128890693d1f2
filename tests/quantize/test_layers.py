import pytest
from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.quantize.layers import check_layers
from tests.quantize.nets import chain


def conv(**options: object) -> nn.Conv2d:
    return nn.Conv2d(1, 2, 3, **options)  # type: ignore[arg-type]


END = (nn.Flatten(), nn.Linear(8, 3))


def test_the_published_network_is_fine() -> None:
    check_layers(Mnist2kb().build())


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Sequential(conv()), "must start with a PixelPool"),
        (nn.Sequential(), "must start with a PixelPool"),
        (chain(conv(), nn.ReLU()), "must end with the layer that gives its logits"),
        (chain(), "must end with the layer that gives its logits"),
        (chain(conv(), *END), "after conv1: every Conv2d and Linear but the last"),
        (chain(conv(), nn.MaxPool2d(2), nn.ReLU(), *END), "after conv1"),
        (chain(conv(), nn.ReLU(), nn.ReLU(), *END), "after relu1"),
        (chain(conv(), nn.ReLU(), nn.BatchNorm2d(2), *END), "batchnorm2d1 is a BatchNorm2d"),
        (chain(conv(padding=1, padding_mode="reflect"), nn.ReLU(), *END), "pads with reflect"),
        (chain(conv(), nn.ReLU(), nn.MaxPool2d(2, padding=1), *END), "maxpool1 has padding"),
        (chain(conv(), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True), *END), "maxpool1 has padding"),
    ],
)
def test_what_has_no_integer_counterpart_is_one_line(network: nn.Sequential, message: str) -> None:
    with pytest.raises(ThimbleError, match=message) as caught:
        check_layers(network)
    assert "\n" not in str(caught.value)
