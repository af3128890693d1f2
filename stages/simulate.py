"""Stage simulate: build/, size.json and the test images -> device.json and outputs.npz."""

from pathlib import Path

from pipeline import artifacts, board, config
from pipeline.targets import device
from stages._main import run


def main() -> None:
    cfg = config.load()
    report, arrays = device.measure(
        cfg["target"],
        Path("build"),
        artifacts.read_json(Path("size.json")),
        board.hardware(cfg["hardware"]),
        artifacts.read_npz(Path("data/dataset.npz"))["test_images"],
    )
    artifacts.write_npz(Path("outputs.npz"), arrays)
    artifacts.write_json(Path("device.json"), report)


if __name__ == "__main__":
    run(main)
