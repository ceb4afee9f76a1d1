"""A board: where it is, how it is known, what the firmware's side and ours know alike, and one program at a time."""

import re
import subprocess
import sys
import threading
from importlib import import_module

import pytest
from pydantic import ValidationError

from stages.backends.cortex_m import runtime as cortex_m
from stages.backends.hardware.place import address, check_place
from stages.backends.hardware.taken import taken
from stages.backends.riscv import runtime as riscv
from stages.backends.targets.chip import ChipNumber
from stages.backends.targets.load import load_target
from stages.support.system.installation import INSTALLATION


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


BACKENDS = INSTALLATION / "stages/backends"
# Names of the enumerations in C, and what the counter is called.
_CALLED = {"DWT_CYCLES": "DWT", "SYSTICK_CYCLES": "SysTick", "MCYCLE": "mcycle"}


def enumerated(text: str, first: str) -> dict[str, int]:
    """Names and values of the enumeration in C whose first name is `first`."""
    found = re.search(rf"enum \w*\s*\{{\s*({first}\b[^}}]*)\}}", text)
    assert found is not None, first
    values, value = {}, -1
    for part in found[1].split(","):
        name, _, given = part.partition("=")
        value = int(given) if given else value + 1
        values[name.strip()] = value
    return values


def test_counters_are_those_of_the_families() -> None:
    arm = enumerated((BACKENDS / "cortex_m/runtime/cycles.c").read_text(), "NOTHING")
    assert arm.pop("NOTHING") not in cortex_m.COUNTERS
    assert {number: _CALLED[name] for name, number in arm.items()} == cortex_m.COUNTERS
    other = enumerated((BACKENDS / "riscv/runtime/cycles.c").read_text(), "MCYCLE")
    assert {number: _CALLED[name] for name, number in other.items()} == riscv.COUNTERS


@pytest.mark.parametrize("family", ["cortex_m", "riscv"])
def test_a_family_that_runs_on_boards_says_how(family: str) -> None:
    package = import_module(f"stages.backends.{family}.runtime")
    registers = package.at_start({"vectors": 0x100, "reset": 0x201, "_start": 0x80})
    assert registers[-1] == ("pc", {"cortex_m": "0x200", "riscv": "0x80"}[family], True)
    assert callable(import_module(package.FAULTS).fault_message)


HOLDER = """\
import sys
from stages.backends.hardware.taken import taken
with taken(sys.argv[1]):
    print("has it", flush=True)
    sys.stdin.read()
"""


def test_a_place_is_had_by_one_run_whatever_process_it_is_in() -> None:
    place = "gdb://localhost:61234"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None and holder.stdout is not None
    assert holder.stdout.readline() == "has it\n"
    waited, had = threading.Event(), threading.Event()

    def second() -> None:
        # The same board by its other name.
        with taken("gdb://127.0.0.1:61234", waited.set):
            had.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert waited.wait(30) and not had.is_set()
    with taken("gdb://localhost:61235"):  # another board
        pass
    assert not had.is_set()
    holder.communicate("")
    thread.join(30)
    assert had.is_set()
