"""Preflight check for models that cannot fit the target by any kernel, layout or plan."""

from stages.backends.targets.spec import Target
from stages.compile.firmware import remedy
from stages.ir.models.least_memory import LeastMemory
from stages.support.messages.stage_error import DoesNotFit


def check_fits(least: LeastMemory, target: Target) -> None:
    """Raise DoesNotFit, with sizes and their origin, if the memory is too small in any case."""
    memory = target.memory
    if memory is None:
        return
    needs, details = [], []
    arena, weights = memory.homes("arena"), memory.homes("weights")
    weights = [
        name for name in weights if memory.loaded_from(name) not in weights
    ]  # copied weights are in both regions
    rom, ram = " and ".join(weights), " and ".join(arena)
    rom_bytes = sum(memory.regions[name].length for name in weights)
    stack = memory.stack if memory.home("stack") in arena else 0
    ram_bytes = sum(memory.regions[name].length for name in arena)
    if least.weights > rom_bytes:
        needs.append(f"{rom} {_need(weights)} {least.weights:,} bytes or more, but {_have(weights)} {rom_bytes:,}")
        details.append(f"{rom}: weights of {least.weighted} layers; the largest: {least.heaviest} bytes")
    largest = max(memory.capacities("arena"), key=lambda capacity: capacity.bytes)
    if least.activations + stack > ram_bytes:
        needs.append(
            f"{ram} {_need(arena)} {least.activations + stack:,} bytes or more, but {_have(arena)} {ram_bytes:,}"
        )
        details.append(f"{ram}: {least.largest} bytes" + (f"; stack {stack:,}" if stack else ""))
    elif least.tensor > largest.bytes:
        needs.append(
            f"a tensor needs {least.tensor:,} bytes, but the largest region {largest.region} has {largest.bytes:,}"
        )
        details.append(f"{largest.region}: {least.tensor_name} bytes")
    if needs:
        message = "\n".join([f"the model does not fit target {target.name}: {'; '.join(needs)}", *details])
        only_stack = len(needs) == 1 and least.activations <= ram_bytes < least.activations + stack
        raise DoesNotFit(message, hint=("lower memory.stack, " if only_stack else "") + remedy(target))


def _need(regions: list[str]) -> str:
    return "needs" if len(regions) == 1 else "need"


def _have(regions: list[str]) -> str:
    return "has" if len(regions) == 1 else "have"
