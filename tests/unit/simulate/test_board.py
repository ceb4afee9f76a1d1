"""What a run on a board leaves beside its figures."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from stages.simulate import STAGE, SimulateConfig
from stages.simulate.firmware import FirmwareRun
from stages.simulate.simulate import _Board, _board_counts

_TICKS = "its cycles by mcycle follow the clock of the host, and are not cycles"


@pytest.mark.parametrize(
    ("total", "chip", "simulator", "warned"),
    [
        (9, ["CPUID 0xc240"], "", []),
        (0, ["CPUID 0xc240"], "", ["the board's counter did not change: ignore its cycles by mcycle"]),
        (9, [], "", ["the target declares no chip ID: the run may have used another board than intended"]),
        (9, ["CPUID 0xc240"], "QEMU", [f"gdb://here:1 is QEMU, not a board: {_TICKS}"]),
    ],
)
def test_figures_that_say_nothing_and_a_board_that_may_be_any_are_warned_of(
    total: int, chip: list[str], simulator: str, warned: list[str]
) -> None:
    run = FirmwareRun(b"", b"", [[total], [total]], [total, total], 4)
    told: dict[str, Any] = {
        "place": "gdb://here:1",
        "simulator": simulator,
        "counter": "cycles by mcycle",
        "chip": chip,
    }
    counts = _board_counts(run, cast(_Board, SimpleNamespace(facts=told)))
    assert counts["warnings"] == warned and counts["ran"] == told and counts["inferences"][0]["total"] == total


def test_every_plan_of_a_run_on_a_board_has_a_key_of_its_own() -> None:
    board = SimulateConfig(run_on="gdb://localhost:3333")
    assert STAGE.parameters(board) != STAGE.parameters(board)
    assert STAGE.parameters(SimulateConfig()) == STAGE.parameters(SimulateConfig())
