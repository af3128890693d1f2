import torch
from torch import Tensor, nn

from pipeline.training.environment import Run
from pipeline.training.examples import Examples
from pipeline.training.paper_progress import Steps
from pipeline.training.paper_teacher import Teacher
from pipeline.training.paper_teachers import Teachers, trained


class Says(nn.Module):
    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.said = torch.tensor([logits])

    def forward(self, images: Tensor) -> Tensor:
        return self.said.expand(len(images), -1)


def test_logits_are_averaged() -> None:
    said = Teachers([Says(1.0, 4.0), Says(3.0, -2.0)])(torch.zeros(3, 1, 4, 4))
    assert said.tolist() == [[2.0, 1.0]] * 3


def test_each_is_another_network_and_the_first_is_the_only_one_s() -> None:
    images = torch.rand(64, 1, 8, 8, generator=torch.Generator().manual_seed(1)) * 255
    examples = Examples(images, torch.arange(64) % 2)
    teacher = Teacher(((4, 3, 2), (6, 3, 1)), epochs=1, batch=16)

    def judge(count: int) -> tuple[nn.Module, str]:
        torch.manual_seed(5)
        return trained(teacher, count, examples, 2, Run(3), "key", Steps())

    (one, key), (two, other) = judge(1), judge(2)
    assert key == "key" != other
    assert isinstance(two, Teachers)
    said = [network(images) for network in (one, *two.each)]
    assert torch.equal(said[0], said[1])
    assert not torch.allclose(said[1], said[2])


def test_maximums_halve_what_its_dense_layer_sees() -> None:
    teacher = Teacher(((4, 3, 1), (6, 3, 1), (5, 3, 1)), pooled=(1, 2))
    dense = list(teacher.build(torch.Size([1, 12, 12]), 10))[-1]
    assert isinstance(dense, nn.Linear)
    assert dense.in_features == 5 * (12 // 4 - 2) ** 2
