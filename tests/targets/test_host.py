"""The native program, and hardware=host from generated sources to answers, with the stage programs
on an int8 network; what stages build and simulate find and say; figures of all CPU work of an
inference, on every board. Damaged frames are in tests/codegen/int4/test_robust.py."""

from contextlib import chdir, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipeline import artifacts, passes
from pipeline.errors import ThimbleError
from pipeline.frames import stored
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.measure import timing
from pipeline.plan import proof, serialize
from pipeline.runner.job import resolved
from pipeline.runner.schema import composed
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, device, host, protocol
from pipeline.targets.harness import check_reply, harness_sources
from pipeline.targets.protocol import Command, Status
from pipeline.targets.toolchain import Size
from pipeline.verdict import check
from stages import build as build_stage
from stages import generate as generate_stage
from stages import measure, prove, simulate
from tests import boards
from tests.boards import NAMES
from tests.codegen.int8.support import network
from tests.comparing import equal
from tests.graphs import Chained, Net
from tests.programs import program, ran
from tests.targets import cortex_m
from tests.targets.conftest import expected, load_hardware, needs_avr
from tests.targets.cortex_m import ONE_A_CORE, board_named, built_stand_in, needs_arm
from tests.tiers import quick


def test_a_whole_set_on_all_cores_is_exact_and_in_order(host_program: Path) -> None:
    """Images full of flags and escapes among them. It says what it is."""
    assert host.identify(host_program) == protocol.Identity(16, 3, 2, 0)
    images = np.random.default_rng(5).integers(0, 256, (601, 4, 4, 1)).astype(np.uint8)
    images[:64] = np.random.default_rng(6).choice([0x7D, 0x7E, 0x5D, 0x5E], (64, 4, 4, 1))
    got = host.infer(host_program, images)
    assert got.dtype == np.int16
    np.testing.assert_array_equal(got, expected(images))
    assert host.infer(host_program, images[:0]).shape == (0, 3)


def test_other_refusals(host_program: Path) -> None:
    stream = (
        protocol.encode(ord("?"))
        + protocol.encode(Command.IDENTIFY, b"x")
        + b"\x7eI\x7d\x7e"  # an aborted frame
        + b"\x7e\x7e\x7e"
        + protocol.encode(Command.REPORT)
    )
    statuses = [r.status for r in protocol.replies(host.talk(host_program, stream))]
    assert statuses == [Status.UNKNOWN, Status.OVERSIZED, Status.TRUNCATED, Status.OK]


def test_images_of_another_size_are_one_line(host_program: Path) -> None:
    with pytest.raises(ThimbleError, match="takes 16 B an image, the test set has 784 values"):
        host.infer(host_program, np.zeros((2, 28, 28, 1), np.uint8))
    with pytest.raises(ThimbleError, match="float64"):
        host.infer(host_program, np.zeros((2, 16)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'SUMMARY: error: overflow' >&2; exit 3", "ended with 3: SUMMARY: error: overflow"),
        ("exit 0", "gave 0 answers"),
        ("printf '~abcd~'", "damaged"),
    ],
)
def test_a_program_that_misbehaves_is_one_line(tmp_path: Path, script: str, said: str) -> None:
    found = program(tmp_path, "host", f"cat > /dev/null\n{script}")
    with pytest.raises(ThimbleError, match=said):
        host.infer(found, np.zeros((2, 16), np.uint8))
    found.unlink()
    with pytest.raises(ThimbleError, match="does not start"):
        host.identify(found)


def computer() -> Hardware:
    return boards.load_hardware("host")


def sources(folder: Path, graph: Graph) -> Path:
    return cortex_m.generated(folder, graph, computer(), Ordinary().plan(graph, computer()))


def test_builds_and_answers(tmp_path: Path) -> None:
    graph = network()
    size = builds.build(sources(tmp_path, graph), tmp_path / "build", computer())
    assert size.status == "ok"
    assert size.ram_objects["nn_arena"] == 256 <= size.statics_bytes
    # the compiler may turn a small table into instructions
    assert size.flash_objects["nn_conv0_weights"] == 4 * 3 * 3 * 3 < size.flash_bytes
    assert size.functions["nn_invoke"] and "main" not in size.functions
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3)).astype(np.uint8)
    frames = stored(images, graph.tensors["image"])
    report, arrays = device.measure(
        {"name": "simulate", "images": 7}, tmp_path / "build", vars(size), computer(),
        frames.view(np.uint8),
    )  # fmt: skip
    assert report["images"] == 7 and "latency_cycles" not in report
    expected = graph.evaluate(frames.astype(np.int64))
    equal(arrays["host_outputs"], expected)
    equal(arrays["device_outputs"], expected[:7])


def test_refusals_are_one_line(tmp_path: Path) -> None:
    generated = sources(tmp_path, network())
    with pytest.raises(ThimbleError, match="no build for core 'z80'; have avr, cortex_m, host"):
        builds.build(generated, tmp_path / "build", replace(computer(), core="z80"))
    with pytest.raises(ThimbleError, match="no firmware port for core 'z80'; have avr, cortex_m"):
        harness_sources(replace(computer(), core="z80"))
    header = generated / "model.h"
    plain = header.read_text()
    header.write_text(plain.replace("NN_ARENA_BYTES 256", "NN_ARENA_BYTES 250 + 6"))
    with pytest.raises(ThimbleError, match=r"linked nn_arena has 256 B, model.h says 250"):
        builds.build(generated, tmp_path / "build", computer())


def picture(height: int, width: int) -> Graph:
    """As many bytes out as in."""
    return Chained(Net((height, width, 1))).conv(1, (1, 1)).graph()


def test_a_reply_holds_65535_bytes(tmp_path: Path) -> None:
    """So does a request, whose counter has 16 bits up to 65,520."""
    graph = picture(255, 257)
    assert graph.tensors[graph.output].size == 0xFFFF
    builds.build(sources(tmp_path, graph), tmp_path / "build", computer())
    frames = np.random.default_rng(1).integers(-128, 128, (2, 255, 257, 1)).astype(np.int8)
    answers = host.infer(tmp_path / "build" / "host", frames.view(np.uint8))
    equal(answers, graph.evaluate(frames.astype(np.int64)).reshape(2, -1))


@pytest.mark.parametrize("core", ["avr", "cortex_m", "host"])
def test_more_is_refused_before_anything_is_compiled(core: str, tmp_path: Path) -> None:
    nothing = replace(computer().toolchain, compiler="no-such-compiler")
    hardware = replace(computer(), core=core, toolchain=nothing)
    generated = sources(tmp_path, picture(256, 256))
    said = r"gives 65,536 bytes of output \(65,536 of 1 B\).* room for 65,535: .*Predictor"
    with pytest.raises(ThimbleError, match=said):
        builds.build(generated, tmp_path / "build", hardware)
    assert not (tmp_path / "build").exists()
    (generated / "model.h").write_text("#define NN_ARENA_BYTES 1\n")
    with pytest.raises(ThimbleError, match="does not say NN_OUTPUT_COUNT"):
        builds.build(generated, tmp_path / "build", hardware)


def test_wide_outputs_count_by_their_bytes(tmp_path: Path) -> None:
    header = tmp_path / "model.h"
    for count, bits in ((32767, 16), (16383, 32)):
        for more in (0, 1):
            header.write_text(f"#define NN_OUTPUT_COUNT {count + more}\ntypedef int{bits}_t nn_o;")
            with pytest.raises(ThimbleError) if more else nullcontext():
                check_reply(header)


def test_the_firmware_itself_refuses_what_it_cannot_count(tmp_path: Path) -> None:
    """For who compiles it without Thimble."""
    generated = sources(tmp_path, picture(256, 256))
    command = ["cc", "-std=gnu99", "-fsyntax-only", f"-I{generated}", generated / "main.c"]
    done = ran(command)
    assert done.returncode and "a reply counts its outputs' bytes in 16 bits" in done.stderr


def workspace(folder: Path, graph: Graph, images: int) -> Path:
    """Write what the stages before generate leave, with so many test images."""
    folder.mkdir()
    params = resolved(composed("hardware=host", "target.images=5"))
    (folder / "params.yaml").write_text(yaml.safe_dump(params))
    rng = np.random.default_rng(1)
    pictures = rng.integers(0, 256, (images, 8, 8, 3) if images else (0, 1, 1, 1))
    arrays = {"test_images": pictures.astype(np.uint8), "test_labels": np.zeros(images, np.uint8)}
    artifacts.write_npz(folder / "data" / "dataset.npz", arrays)
    graph.save(folder)
    artifacts.write_npz(folder / "float_labels.npz", {"labels": np.full(images, 9)})
    (folder / "quantization.csv").write_text("")
    plan = Ordinary().plan(graph, computer())
    artifacts.write_json(folder / "passes.json", [{"pass": "", **passes.size(graph)}])
    artifacts.write_json(folder / "schedule.json", check(plan, graph, computer()))
    serialize.save(plan, folder / "plan.json")
    proof.save(folder / "proof.json", proof.prove(plan, graph), plan, graph)
    return folder


def run(folder: Path) -> dict[str, object]:
    with chdir(folder):
        for stage in (generate_stage, build_stage, simulate, prove, measure):
            stage.main()
    return dict(artifacts.read_json(folder / "metrics.json"))


def test_the_stages_with_a_test_set(tmp_path: Path) -> None:
    found = run(workspace(tmp_path / "w", network(), 30))
    assert (found["images_host"], found["mismatches_host"]) == (30, 0)
    assert (found["images_device"], found["mismatches_device"]) == (5, 0)
    assert 0 <= found["accuracy_int"] <= 1  # type: ignore[operator]
    assert "stack_bytes" not in found
    assert (found["images_float"], found["agreement_float"], found["accuracy_float"]) == (30, 0, 0)


@pytest.mark.ci
def test_the_stages_without_any_image(tmp_path: Path) -> None:
    """Then ``target.images`` pictures of nothing, and no accuracy."""
    net = Net((8, 8, 3), np.random.default_rng(0), "uint8")
    net.conv(2)
    found = run(workspace(tmp_path / "w", net.graph(), 0))
    assert (found["images_host"], found["mismatches_host"]) == (5, 0)
    assert not [name for name in found if name.startswith("accuracy")]


TEST_SET = np.random.default_rng(3).integers(0, 256, (300, 4, 4, 1)).astype(np.uint8)


def measured(built: tuple[Path, Size], hardware: Hardware, **target: Any) -> Any:
    return device.measure(target, built[0], asdict(built[1]), hardware, TEST_SET)


@needs_avr
def test_every_output_on_the_chip_and_on_the_host_is_exact(
    built: tuple[Path, Size], arduino: Hardware, shim: Path
) -> None:
    report, arrays = measured(built, arduino, name="simulate", images=25)
    np.testing.assert_array_equal(arrays["host_outputs"], expected(TEST_SET))
    np.testing.assert_array_equal(arrays["device_outputs"], expected(TEST_SET)[:25])
    assert report["images"] == len(arrays["latency_cycles"]) == len(arrays["compute_cycles"]) == 25
    assert report["host"] == {"images": 300}
    assert report["sram_bytes"] == report["statics_bytes"] + report["stack_bytes"]
    assert report["statics_bytes"] == built[1].statics_bytes
    spread = report["latency_cycles"]
    assert 0 < spread["min"] <= spread["median"] <= spread["max"]
    assert spread["max"] == arrays["latency_cycles"].max()


@needs_avr
def test_the_host_and_no_images_are_targets_too(
    built: tuple[Path, Size], arduino: Hardware, shim: Path
) -> None:
    report, arrays = measured(built, arduino, name="host", images=40)
    assert report["images"] == len(arrays["device_outputs"]) == 40
    assert "latency_cycles" not in report and "stack_bytes" not in report
    report, _ = measured(built, arduino, name="host", images=99_999)  # all that there are
    assert report["images"] == 300
    report, arrays = measured(built, arduino, name="simulate", images=0)
    assert arrays["device_outputs"].shape == (0, 3)
    assert report["stack_bytes"] > 0


@needs_avr
def test_an_unknown_simulator_is_one_line(built: tuple[Path, Size]) -> None:
    with pytest.raises(ThimbleError, match=r"no simulator 'spice'; have simavr, native, qemu; try"):
        measured(built, load_hardware(simulator="spice"), name="simulate", images=1)


BYTES = 16
"""Bytes of the stand-in's input."""

LOOP = "\nfor (volatile int16_t n = 0; n < {}; n++) {{\n}}\n"


def figures(folder: Path, name: str, fed: int, invoked: int) -> dict[str, Any]:
    """Measure a stand-in that makes so many rounds of a loop for each byte, and in nn_invoke."""
    hardware = board_named(name)
    parts = {"feed": LOOP.format(fed), "invoke": LOOP.format(invoked)}
    size = built_stand_in(folder, hardware, **parts)
    images = np.zeros((1, 4, 4, 1), np.uint8)
    target = {"name": "simulate", "images": 1}
    report, _ = device.measure(target, folder / "build", vars(size), hardware, images)
    return timing(report, hardware) | {"power": hardware.power, "hz": hardware.clock_hz}


@pytest.mark.usefixtures("compiled_once")
@needs_arm
@needs_avr
@pytest.mark.parametrize(
    "name",
    quick(1, [n for n in dict.fromkeys(("arduino", *ONE_A_CORE, *NAMES)) if n != "host"], ci=2),
)
def test_feeding_counts_as_much_as_invoking(name: str, tmp_path: Path) -> None:
    most = {"none": (0, 0), "feeding": (20, 0), "invoking": (0, 20 * BYTES)}
    none, feeding, invoking = (
        figures(tmp_path / word, name, *rounds) for word, rounds in most.items()
    )
    assert feeding["cycles"] - none["cycles"] > 20 * BYTES * 4  # a round's instructions at least
    for key in {"cycles", "instructions"} & none.keys():
        fed, invoked = (each[key] - none[key] for each in (feeding, invoking))
        assert fed == pytest.approx(invoked, rel=0.2), key  # caches begin cold at each byte
    assert feeding["latency_us"] < none["latency_us"] + 0.1 * (
        invoking["latency_us"] - none["latency_us"]
    ), "but of one byte it happened before the last one came"
    for found in (none, feeding, invoking):
        assert found["compute_us"] == pytest.approx(found["cycles"] / found["hz"] * 1e6)
        if found["power"].active_ma:
            expected = found["power"].active_uj(found["compute_us"])
            assert found["energy_uj"] == pytest.approx(expected)
        assert ("energy_uj" in found) == bool(found["power"].active_ma)


def test_what_nobody_times_has_no_figures() -> None:
    assert timing({"images": 3}, board_named("host")) == {}
