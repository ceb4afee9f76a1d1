"""Memory maps of named regions: what may lie where, and what the start-up code is told of it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from stages.targets.linker_script import own_section, protection_flags
from stages.targets.load import load_target
from stages.targets.memory import Memory

ROM = {"origin": 0, "length": "1M"}
RAM = {"origin": "0x20000000", "length": "64K"}
SPAN = "0x20000000 to 0x2000ffff"
CAPITALS = {**RAM, "origin": 0x30000000, "holds": ["data"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rom": {**ROM, "holds": ["code", "weights"]}}, ": no region holds constants"),
        ({"dtcm": {**RAM, "holds": ["arena"]}}, f"dtcm: {SPAN}, overlaps ram, {SPAN} / ram"),
        ({"DTCM": CAPITALS}, "DTCM: a region's name has letters, digits and _, in lower case"),
        (
            {"dtcm": {"origin": "0x30000000", "length": "1K"}},
            "dtcm: what may it hold? holds: [code, constants, weights, data, stack, arena]",
        ),
        (
            {"dtcm": {"origin": "0x30000000", "length": "1K", "holds": ["stack"]}, "ram": {**RAM, "speed": 1}},
            "stack: a stack of 16,384 bytes leaves nothing of the dtcm's 1,024 / dtcm.length",
        ),
    ],
)
def test_map_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Memory.model_validate({"rom": ROM, "ram": RAM, **changes})
    (detail,) = raised.value.errors()
    at, beside = detail["ctx"]["at"], detail["ctx"]["beside"]
    shown = f"{'.'.join(at)}: {detail['msg']}" + (f" / {'.'.join(beside)}" if beside else "")
    assert shown == message


def test_an_address_is_no_size() -> None:
    for field, what in (("origin", "an address is a number, such as 0x80000000"), ("length", "a size is a number of")):
        with pytest.raises(ValidationError, match=what):
            Memory.model_validate({"rom": ROM, "ram": {**RAM, field: "here"}})


def test_part_that_does_not_exist() -> None:
    with pytest.raises(ValidationError) as raised:
        Memory.model_validate({"rom": ROM, "ram": {**RAM, "holds": ["data", "heap"]}})
    assert raised.value.errors()[0]["loc"] == ("ram", "holds", 1)


def test_regions_that_touch_are_apart() -> None:
    Memory.model_validate({"rom": ROM, "ram": {"origin": "0x100000", "length": "64K"}})


def test_a_part_lies_in_the_fastest_region_that_may_hold_it() -> None:
    constant, variable = ["code", "constants", "weights"], ["data", "stack", "arena"]
    memory = Memory.model_validate(
        {
            "flash": {"origin": 0, "length": "1M", "holds": constant, "speed": 2},
            "itcm": {"origin": "0x10000000", "length": "1K", "holds": ["code"]},
            "slow": {"origin": "0x20000000", "length": "64K", "holds": variable, "speed": 1},
            "other": {"origin": "0x30000000", "length": "64K", "holds": variable, "speed": 1},
            "fast": {"origin": "0x40000000", "length": "32K", "holds": ["arena"]},
        }
    )
    homes = [memory.home(part) for part in ("code", "constants", "weights", "data", "stack", "arena")]
    assert homes == ["itcm", "flash", "flash", "slow", "slow", "fast"]
    assert memory.homes("arena") == ["fast", "slow", "other"]
    sections = [own_section("arena", region, memory) for region in memory.homes("arena")]
    assert sections == [".bss.arena.fast", "", ".bss.arena.other"]
    assert own_section("weights", "flash", memory) == ""
    others = "OTHER(0,READ_AND_RUN)OTHER(1,READ_AND_WRITE)OTHER(2,READ_AND_WRITE)"
    assert protection_flags(memory) == (f"-DOTHER_REGIONS={others}", "-DOTHER_ROM=0")


def test_one_rom_and_one_ram_need_no_sections_of_their_own() -> None:
    target = load_target("cortex-m4")
    memory = target.memory
    assert memory is not None
    assert own_section("arena", "ram", memory) == own_section("weights", "rom", memory) == ""
    assert target.rooms == {}
    assert protection_flags(memory) == ()


def test_rooms_leave_the_stack_and_what_others_need() -> None:
    """Only a target with a choice has rooms: emitted sources of all others are the same on every board of a core."""
    memory = Memory.model_validate(
        {
            "rom": {**ROM, "holds": ["code", "constants", "weights"]},
            "qspi": {"origin": "0x90000000", "length": "8M", "speed": 1, "holds": ["weights"]},
            "sram": {"origin": "0x30000000", "length": "64K", "speed": 1, "holds": ["arena"]},
            "dtcm": {**RAM, "holds": ["data", "stack", "arena"]},
            "stack": "2K",
            "reserve": {"data": "1K"},
        }
    )
    target = load_target("cortex-m7").model_copy(update={"memory": memory})
    assert {part: [tuple(room.model_dump().values()) for room in rooms] for part, rooms in target.rooms.items()} == {
        "weights": [("rom", 1 << 20, 64 << 10), ("qspi", 8 << 20, 0)],
        "arena": [("dtcm", 62 << 10, 1 << 10), ("sram", 64 << 10, 0)],
    }
    assert target.model_dump(include={"rooms"})["rooms"]["arena"][0]["region"] == "dtcm"
