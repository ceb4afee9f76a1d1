"""Where a board is, and by which numbers it is known."""

import pytest
from pydantic import ValidationError

from stages.backends.hardware.place import address, check_place
from stages.backends.targets.chip import ChipNumber
from stages.backends.targets.load import load_target


def test_places() -> None:
    assert address("gdb://localhost:3333") == "localhost:3333" and address("gdb://[::1]:1") == "[::1]:1"
    wrong = "localhost:3333 gdb://localhost gdb://:1 gdb://x:0 gdb://x:70000"
    for place in (*wrong.split(), "gdb://a b:1", "gdb://x:1\n"):
        with pytest.raises(ValueError, match="gdb://HOST:PORT"):
            check_place(place)


def test_numbers_of_a_board_come_after_those_of_its_core() -> None:
    board = load_target("nucleo-f446re")
    assert [one.name for one in board.chip] == ["CPUID", "DBGMCU_IDCODE"]
    assert board.chip[:1] == load_target("cortex-m4").chip
    assert load_target("esp32-c3").chip[0].register_name == "marchid" and load_target("rv64-rvp").chip == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "x", "value": 1}, "needs an address or a register"),
        ({"name": "x", "address": 4, "register": "misa", "value": 1}, "needs an address or a register"),
        ({"name": "x", "address": 4, "mask": 0xF, "value": 0x10}, "has bits outside of the mask 0xf"),
    ],
)
def test_numbers_that_mean_nothing(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ChipNumber.model_validate(given)
