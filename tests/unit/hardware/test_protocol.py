"""What the firmware's side and the host's side of a board have to know alike."""

import re
from importlib import import_module

import pytest

from stages.backends.cortex_m import runtime as cortex_m
from stages.backends.riscv import runtime as riscv
from stages.support.system.installation import INSTALLATION

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
