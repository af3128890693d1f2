"""A run's metrics, each one that is missing with the reason; its parameters."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from pipeline import budget
from pipeline.artifacts import write_json
from pipeline.pruning.method import Pruned, Row
from pipeline.runner.job import resolved
from pipeline.runner.schema import composed
from pipeline.tracking.figures import ASKED, curves, known, missing
from pipeline.tracking.params import BOARD, LONGEST, params
from pipeline.training.loop import Row as Epoch
from tests.boards import NAMES, node

ALL = {"accuracy_int": 0.99, "pmu_bytes": 430.5, "sram_bytes": 2000, "latency_us": 23000.0}
ALL |= {"wear": 9e6, "write_amplification_erase": 3.0, "energy_uj": 1790.0, "images_host": 10}
ALL |= {"wear_years_first_failure": 80.0, "wear_years_half": 300.0, "status": "ok"}
CONFIG = {
    "until": "measure",
    "data": {"name": "mnist"},
    "hardware": {"name": "arduino", "core": "avr", "power": {"active_ma": 10.4},
                 "card": {"bytes": 4e9}},
    "target": {"name": "simulate", "images": 100},
}  # fmt: skip


def without(*names: str, **more: Any) -> dict[str, Any]:
    return {key: value for key, value in ALL.items() if key not in names} | more


def changed(group: str, **values: Any) -> dict[str, Any]:
    return {**CONFIG, group: {**CONFIG[group], **values}}  # type: ignore[dict-item]


def test_a_whole_run_lacks_nothing() -> None:
    assert missing(ALL, CONFIG) == {}
    assert known(ALL) == {key: ALL[key] for key in known(ALL)}
    assert set(ASKED) <= {*known(ALL), "model"}
    found = known({**ALL, "accuracy_device": 0.1, "accuracy_float": 0.1, "random_weights": True})
    assert not [name for name in found if name.startswith("accuracy")], "it would mean nothing"
    assert found["pmu_bytes"] == 430.5


TIMES = ("latency_us", "energy_uj")
WEARS = ("wear_years_first_failure", "wear_years_half")


@pytest.mark.parametrize(
    ("result", "config", "names", "reason"),
    [
        (without("accuracy_int"), changed("data", name="none"), ["accuracy_int"],
         "no data: data=none has no labels"),
        ({**ALL, "random_weights": True}, CONFIG, ["accuracy_int"],
         "random weights, which have learnt nothing"),
        (without("energy_uj"), changed("hardware", name="nucleo_g0b1re", power={"active_ma": 0}),
         ["energy_uj"], "no current known for nucleo_g0b1re: hardware.power.active_ma is 0"),
        (without(*TIMES), changed("target", images=0), TIMES,
         "nothing executed on the board: target.images=0"),
        (without(*TIMES, "sram_bytes"), changed("hardware", core="host"), ("sram_bytes", *TIMES),
         "a native program: a computer's memory, cycles and energy are not counted"),
        (without(*WEARS, wear=0), changed("hardware", card={"bytes": 0}), WEARS,
         "no card: arduino has none that could wear"),
        (without("wear_years_half", wear=0), CONFIG, ["wear_years_half"],
         "nothing wears: the plan leaves the card alone"),
        (without("wear_years_first_failure"), CONFIG, ["wear_years_first_failure"],
         "unknown how long cells of the card of arduino last: hardware.card"),
        (without("energy_uj"), changed("target", name="flash"), ["energy_uj"],
         "executed on the board, where no current is measured"),
        (without(*TIMES), changed("target", name="flash", dry_run=True), TIMES,
         "nothing executed: target.dry_run=true"),
        (without(*TIMES), CONFIG, TIMES, "the board's simulator does not count it"),
    ],
)  # fmt: skip
def test_why_a_finished_run_lacks_it(
    result: dict[str, Any], config: dict[str, Any], names: Sequence[str], reason: str
) -> None:
    assert missing(result, config) == dict.fromkeys(names, reason)


@pytest.mark.parametrize(
    ("until", "planned", "built", "other"),
    [
        ("train", "nothing planned", "nothing built", "nothing executed"),
        ("schedule", "", "nothing built", "nothing executed"),
        ("build", "", "", "nothing executed"),
        ("simulate", "", "", "nothing measured"),
    ],
)
def test_what_until_leaves_out(until: str, planned: str, built: str, other: str) -> None:
    has = {"status": "ok"}
    has |= {} if planned else {"pmu_bytes": 1}
    has |= {} if built else {"sram_bytes": 1}
    found = missing(has, {**CONFIG, "until": until})
    assert found.get("pmu_bytes", "").removesuffix(f": until={until}") == planned
    assert found.get("sram_bytes", "").removesuffix(f": until={until}") == built
    assert found["energy_uj"] == found["accuracy_int"] == f"{other}: until={until}"


def test_an_early_end_or_a_secret_network_is_said() -> None:
    result = {"status": "infeasible", "pmu_bytes": 3000, "resource": "SRAM"}
    result |= {"needed_bytes": 3000, "available_bytes": 2048}
    found = missing(result, CONFIG)
    assert set(found) == set(ASKED) - {"pmu_bytes"}
    assert set(found.values()) == {"does not fit: SRAM needs 3000 B of 2048 B"}
    found = missing({"status": "failed", "error": "the oven is cold: heat it"}, {})
    assert found == dict.fromkeys(ASKED, "the run failed: the oven is cold: heat it")
    found = missing({**ALL, "status": "failed", "error": "3 images differ"}, CONFIG)
    assert found == {"model": "the run failed: 3 images differ"}, "it keeps its figures"
    for security, reason in (("encrypted", "security=encrypted: the C tells the weights"),
                             ("integrity", None)):  # fmt: skip
        card = {"card": {"bytes": 4e9, "security": security}}
        assert missing(ALL, changed("hardware", **card)).get("model") == reason
    assert missing(ALL, {**CONFIG, "until": "schedule"})["model"] == (
        "nothing generated: until=schedule"
    )


def test_curves_have_a_step_for_each_epoch_or_row(tmp_path: Path) -> None:
    assert list(curves(tmp_path)) == []
    text = (
        "epoch,phase,loss,validation_accuracy\n1,float,2.3,0.1\n2,float,0.5,0.8\n5,frozen,nan,0.9\n"
    )
    (tmp_path / "training.csv").write_text(text)
    rows = [Row("conv1", 8, 6, 72, 54), Row("conv2", 12, 9, 864, 486)]
    needs = [dict.fromkeys(budget.UNITS, 7.0) | {"pmu_bytes": n} for n in (10_752.0, 6_144.0)]
    epochs = [Epoch(1, "gates", 0.4, 0.9), Epoch(2, "tune", 0.3, 0.9)]
    write_json(tmp_path / "pruning.json", Pruned({}, rows, needs, epochs).tables)
    found = list(curves(tmp_path))
    steps = [each[1:] for each in found if each[0] == "pruning_steps/pmu_bytes"]
    assert steps == [(10_752, 0), (6_144, 1)]
    assert ("pruning_epochs/loss", 0.3, 2) in found
    right = [each[1:] for each in found if each[0] == "training/validation_accuracy"]
    assert right == [(0.1, 1), (0.8, 2), (0.9, 5)]
    assert [step for name, _, step in found if name == "training/loss"] == [1, 2, 5]
    after = [(value, step) for name, value, step in found if name == "pruning/channels_after"]
    assert after == [(6, 1), (9, 2)]
    assert "training/phase" not in {name for name, _, _ in found}


def config(*overrides: str) -> dict[str, Any]:
    return resolved(composed(*overrides))


def test_no_board_fills_the_screen() -> None:
    run = config("train=quick")
    for board in NAMES:
        hardware = OmegaConf.to_container(OmegaConf.merge(run["hardware"], node(board)))
        found = params({**run, "hardware": hardware}, {"torch": "2"}, [])
        chosen = {key for key in found if key.startswith("hardware.")}
        assert chosen == set(BOARD) and found["hardware.name"] == board
        assert len(found) <= 50


@pytest.mark.parametrize("board", ["nucleo_g0b1re", "stm32f746g_sd", "arduino"])
def test_a_constant_that_was_changed_is_one(board: str) -> None:
    """By a word, or an experiment; also one that the board has from another."""
    words = ["hardware.power.active_ma=7", "++hardware.card.bytes=5"]
    found = params(config(f"hardware={board}", "hardware.sram_bytes=9000", *words), {}, words)
    assert found["hardware.power.active_ma"] == "7.0" and found["hardware.card.bytes"] == "5"
    assert found["hardware.sram_bytes"] == "9000"
    assert "hardware.power.idle_ma" not in found and "hardware.flash_bytes" not in found


def test_versions_are_whole_long_values_are_cut_and_what_changes_no_result_is_none() -> None:
    content = config("output=json", "tracking=wait")
    found = params({**content, "paper": [{"metric": "wear"}]}, {}, [])
    assert not [key for key in found if key.split(".")[0] in ("paper", "output", "cache")]
    assert not [key for key in found if key.endswith("_target_")] and "" not in found.values()
    assert found["strategy.name"] == "herringbone" and found["seed"] == "1"
    found = params({"model": {"blocks": "x" * 900}}, {"host": "gcc 12", "simulator": ""}, [])
    assert found["versions.host"] == "gcc 12" and found["versions.simulator"] == ""
    assert len(found["model.blocks"]) == LONGEST
