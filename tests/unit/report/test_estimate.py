"""Estimated cycles in a report: always with the model's name, in milliseconds where the board has a clock."""

from pathlib import Path

import pytest

from stages.backends.targets.flash import unknown_flash
from stages.backends.targets.load import load_target
from stages.backends.targets.power import Power
from stages.backends.timing.accuracy import accuracy, accuracy_text
from stages.base import StageError
from stages.ir.models.spec import ZooModel
from stages.report import STAGE, ReportConfig
from stages.report.estimate import estimated_cycles, line
from stages.report.latency import latency

COUNTS = {
    "cycles": {
        "model": "cortex-m4",
        "total": {"least": 900_000, "estimate": 1_200_000, "most": 1_500_000},
        "layers": [{"least": 1, "estimate": 2, "most": 3}],
    }
}


@pytest.mark.parametrize(
    ("target", "clock", "told"),
    [
        (
            "nucleo-l4r5zi",
            None,
            (
                "1,200,000 (timing model cortex-m4), 10 ms at 120 MHz, est. 396 µJ; 900,000 to 1,500,000 depending on "
                "operands: Arm Cortex-M4 with the floating-point unit, 5 wait states in rom, lines of 8 bytes, the "
                "next prefetched, 128 of instructions and 32 of data cached"
            ),
        ),
        (
            "cortex-m4",
            100_000_000,
            (
                "1,200,000 (timing model cortex-m4), 12 ms at 100 MHz; 900,000 to 1,500,000 depending on operands: "
                "Arm Cortex-M4 with the floating-point unit, memory without wait states"
            ),
        ),
        (
            "cortex-m4",
            None,
            (
                "1,200,000 (timing model cortex-m4); 900,000 to 1,500,000 depending on operands: "
                "Arm Cortex-M4 with the floating-point unit, memory without wait states"
            ),
        ),
    ],
)
def test_a_line_names_the_model_and_its_memory(target: str, clock: int | None, told: str) -> None:
    found = estimated_cycles(COUNTS, load_target(target).model_dump(mode="json"), clock)
    assert found is not None
    assert line(found) == f"{told}; {accuracy_text(accuracy('cortex-m4'))}"
    assert found["source"].startswith("Arm Cortex-M4 Technical Reference Manual")
    assert found["milliseconds"] == (1.2e9 / found["clock"] if found["clock"] else None)


def test_a_board_without_flash_has_a_range_and_energy() -> None:
    board = load_target("nrf52840-dk")
    assert board.memory is not None and board.board is not None
    power = Power(supply_v=3, ua_per_mhz=50, source="made up")
    update = {
        "flash": unknown_flash(board.memory, 64_000_000),
        "board": board.board.model_copy(update={"power": power}),
    }
    found = estimated_cycles(COUNTS, board.model_copy(update=update).model_dump(mode="json"))
    assert found is not None
    assert [found[key] for key in ("milliseconds", "least_milliseconds", "most_milliseconds")] == [
        None,
        14.0625,
        23.4375,
    ]
    assert line(found).startswith(
        "900,000 to 1,500,000 (timing model cortex-m4), 14.1 to 23.4 ms at 64 MHz, est. 135 to 225 µJ: Arm Cortex-M4"
    )
    time = latency({"estimated_cycles": found, "instructions": {"total": 1}, "board": {"clock": 64_000_000}})
    assert time is not None and time.text == "14.1 to 23.4 ms"
    assert time.basis.startswith("900,000 to 1,500,000 cycles at 64 MHz, timing model cortex-m4")


def test_the_error_on_silicon_is_told() -> None:
    found = {"rows": 56, "held_out": 37, "mean": 0.071, "worst": 0.152}
    assert accuracy_text(found) == "on silicon: 56 rows, 37 held out, mean error 7 %, worst 15 %"
    assert accuracy_text({**found, "rows": 1, "held_out": 0}) == "on silicon: 1 row, mean error 7 %, worst 15 %"
    assert accuracy_text(accuracy("unknown")) == "not compared with silicon"


def test_a_clock_of_a_recipe_is_for_cores() -> None:
    """A board's wait states are for its own clock."""
    config = ReportConfig.model_validate({"clock": "100M"})
    STAGE.preflight(config, ZooModel(zoo="ds_cnn"), load_target("cortex-m4"), Path(), {})
    with pytest.raises(StageError, match="nucleo-l4r5zi has a clock of 120 MHz"):
        STAGE.preflight(config, ZooModel(zoo="ds_cnn"), load_target("nucleo-l4r5zi"), Path(), {})
