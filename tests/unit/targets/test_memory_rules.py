"""The stack that a recipe asks for."""

import pytest

from stages.backends.targets.load import load_target
from stages.backends.targets.memory_rules import StackRule, with_stack
from stages.base import StageError


def test_stack_in_another_region_and_of_another_size() -> None:
    target = with_stack(load_target("stm32h747i-disco"), StackRule(region="axi_sram", bytes=8192))
    for memory in (target.memory, target.simulated):
        assert memory is not None
        assert (memory.home("stack"), memory.stack) == ("axi_sram", 8192)
    room = {room.region: room.bytes for room in target.capacities["arena"]}
    assert room == {"dtcm": 128 << 10, "axi_sram": (512 << 10) - 8192}


def test_a_region_for_the_stack_alone_is_left_out_when_it_lies_elsewhere() -> None:
    target = load_target("cortex-m7")
    assert target.memory is not None
    own = {"origin": 0x30000000, "length": 4096, "speed": 0, "holds": ["stack"]}
    fields = target.memory.model_dump() | {"ccm": own, "stack": 1024}
    fields["ram"]["speed"] = 1
    target = target.model_copy(update={"memory": type(target.memory).model_validate(fields)})
    assert target.memory is not None and target.memory.home("stack") == "ccm"
    moved = with_stack(target, StackRule(region="ram")).memory
    assert moved is not None and moved.home("stack") == "ram" and set(moved.regions) == {"rom", "ram"}


@pytest.mark.parametrize(
    ("target", "given", "at", "told"),
    [
        ("stm32h747i-disco", {"region": "dtmc"}, "region", "no region 'dtmc'; did you mean 'dtcm'?"),
        ("stm32h747i-disco", {"region": "rom"}, "region",
         "may hold code, constants, weights, but not stack; dtcm and axi"),
        ("stm32h747i-disco", {"bytes": 100}, "bytes", "the stack must be a multiple of 16 bytes, not 100"),
        ("stm32h747i-disco", {"bytes": 0}, "bytes", "the stack must be a multiple of 16 bytes, not 0"),
        ("stm32h747i-disco", {"bytes": 1 << 17}, "bytes", "a stack of 131,072 bytes leaves nothing of the dtcm's 131,"),
        ("host", {"bytes": 4096}, "", "host has no regions: its operating system provides the memory"),
    ],
)  # fmt: skip
def test_stack_that_cannot_be(target: str, given: dict[str, object], at: str, told: str) -> None:
    with pytest.raises(StageError) as caught:
        with_stack(load_target(target), StackRule.model_validate(given))
    assert told in str(caught.value)
    assert caught.value.at == ("memory", "stack", *([at] if at else []))
