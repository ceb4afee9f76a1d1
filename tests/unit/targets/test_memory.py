"""Memory maps of named regions: what may lie where, and what the start-up code is told of it."""

import pytest
from pydantic import ValidationError

from stages.backends.targets.linker_script import fill, own_section, start_flags
from stages.backends.targets.load import PIPELINE, load_target
from stages.backends.targets.memory import Memory
from stages.support.options.names import IDENTIFIER_PATTERN, invalid_name

ROM = {"origin": 0, "length": "1M"}
RAM = {"origin": "0x20000000", "length": "64K"}
CAPITALS = {**RAM, "origin": 0x30000000, "holds": ["data"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rom": {**ROM, "holds": ["code", "weights"]}}, ": no region holds constants"),
        ({"DTCM": CAPITALS}, f"DTCM: {invalid_name('DTCM', IDENTIFIER_PATTERN)}"),
        ({"org": {**RAM, "origin": 0x30000000, "holds": ["data"]}},
         "org: org cannot name a region: the linker uses this word"),
        ({"dtcm": {"origin": "0x30000000", "length": "1K"}},
         "dtcm: needs `holds`, a list of: [code, constants, weights, data, stack, arena]"),
        ({"dtcm": {"origin": "0x30000000", "length": "1K", "holds": ["stack"]}, "ram": {**RAM, "speed": 1}},
         "stack: a stack of 16,384 bytes leaves nothing of the dtcm's 1,024 / dtcm.length"),
    ],
)  # fmt: skip
def test_map_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Memory.model_validate({"rom": ROM, "ram": RAM, **changes})
    (detail,) = raised.value.errors()
    at, beside = detail["ctx"]["at"], detail["ctx"]["beside"]
    shown = f"{'.'.join(at)}: {detail['msg']}" + (f" / {'.'.join(beside)}" if beside else "")
    assert shown == message


HERE, THERE = ({"origin": origin, "length": "4M"} for origin in ("0x42000000", "0x3c000000"))


def flash(there: dict[str, object]) -> Memory:
    both = {"here": {**HERE, "holds": ["code"]}, "there": {**there, "holds": ["constants", "weights"]}}
    return Memory.model_validate({**both, "ram": RAM})


def test_memory_that_is_seen_at_two_addresses_counts_once() -> None:
    apart, one = flash(THERE), flash({**THERE, "same_as": "here"})
    assert apart.bytes_of(written=False) == 2 * one.bytes_of(written=False) == 8 << 20
    assert one.bytes_of(written=True) == one.region_of("data").length
    assert (one.same("here"), one.same("there"), apart.same("here")) == (("here", "there"), ("there",), ("here",))
    board = load_target("esp32-c3").memory
    assert board is not None and board.bytes_of(written=False) == 4 << 20


@pytest.mark.parametrize(
    ("there", "says"),
    [
        ({"same_as": "hre"}, "there.same_as: no region 'hre' has its own memory; there are here, ram"),
        ({"same_as": "there"}, "there.same_as: no region 'there' has its own memory; there are here, ram"),
        ({"same_as": "ram"}, "there.same_as: only read-only memory can have two addresses"),
        ({"same_as": "here", "length": "8M"}, "there.length: is 8,388,608 bytes, more than the 4,194,304 of here"),
    ],
)
def test_memory_that_cannot_be_the_same(there: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError) as raised:
        flash({**THERE, **there})
    (detail,) = raised.value.errors()
    assert f"{'.'.join(detail['ctx']['at'])}: {detail['msg']}" == says


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
    assert start_flags(memory) == (f"-DOTHER_REGIONS={others}", "-DOTHER_ROM=0")


def test_weights_in_a_region_that_is_written_are_loaded_elsewhere() -> None:
    """With the other constants, or in the fastest read-only region for weights where those may not be there."""
    ram = {**RAM, "holds": ["data", "stack", "arena", "weights"]}
    plain = Memory.model_validate({"rom": ROM, "ram": ram})
    assert (plain.loaded_from("ram"), plain.loaded_from("rom")) == ("rom", "")
    assert [(room.region, room.loaded_from) for room in plain.capacities("weights")] == [("rom", ""), ("ram", "rom")]
    assert not any(room.loaded_from for room in plain.capacities("arena"))
    small = {**ROM, "holds": ["code", "constants"]}
    flash = {"origin": "0x90000000", "length": "8M", "speed": 1, "holds": ["weights"]}
    assert Memory.model_validate({"rom": small, "ram": ram, "qspi": flash}).loaded_from("ram") == "qspi"
    assert Memory.model_validate({"rom": small, "ram": ram}).loaded_from("ram") == "rom"


def test_copied_weights_have_no_room_below_the_stack() -> None:
    """The stack grows down to the start of its region, where it must run out of memory, not over weights."""
    memory = Memory.model_validate({"rom": ROM, "ram": {**RAM, "holds": ["data", "stack", "arena", "weights"]}})
    for family in ("cortex_m", "riscv"):
        script = fill(PIPELINE.parent / f"stages/backends/{family}/runtime/link.ld.in", memory)
        assert script.index(".stack (NOLOAD)") < script.index("*(.weights.ram)") < script.index(".bss (NOLOAD)")
    assert start_flags(memory) == ("-DCOPIED=COPY(0)",)


@pytest.mark.parametrize(
    ("reserve", "told"),
    [
        ({"code": "2M"}, "2,097,152 bytes reserved for code are more than the rom's 1,048,576"),
        ({"data": "65K"}, "66,560 bytes reserved for data are more than the ram's 65,536"),
    ],
)
def test_no_more_is_reserved_than_there_is(reserve: dict[str, str], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Memory.model_validate({"rom": ROM, "ram": RAM, "reserve": reserve})
    # What is usually reserved need not be there.
    Memory.model_validate({"rom": {**ROM, "length": "32K"}, "ram": {**RAM, "length": "2K"}, "stack": 1024})
