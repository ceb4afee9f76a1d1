"""Models that no kernel, layout or plan of the arena can bring into the target's memory."""

from __future__ import annotations

from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.compile.firmware import remedy
from stages.ir.models.least_memory import LeastMemory


def check_fits(least: LeastMemory, target: Target) -> None:
    """Raises StageError, with the sizes and where they come from, when the target's memory is surely too small."""
    memory = target.memory
    if memory is None:
        return
    needs, parts = [], []
    arena, weights = memory.homes("arena"), memory.homes("weights")
    weights = [name for name in weights if memory.loaded_from(name) not in weights]  # a copy is in both
    rom, ram = " and ".join(weights), " and ".join(arena)
    rom_bytes = sum(memory.regions[name].length for name in weights)
    stack = memory.stack if memory.home("stack") in arena else 0
    ram_bytes = sum(memory.regions[name].length for name in arena)
    if least.weights > rom_bytes:
        needs.append(f"{rom} {_need(weights)} {least.weights:,} bytes or more and {_have(weights)} {rom_bytes:,}")
        parts.append(f"{rom}: the weights of {least.weighted} layers, most those of {least.heaviest} bytes")
    whole = max(memory.rooms("arena"), key=lambda room: room.bytes)
    if least.activations + stack > ram_bytes:
        needs.append(
            f"{ram} {_need(arena)} {least.activations + stack:,} bytes or more and {_have(arena)} {ram_bytes:,}"
        )
        parts.append(f"{ram}: {least.largest} bytes" + (f"; stack {stack:,}" if stack else ""))
    elif least.tensor > whole.bytes:
        needs.append(f"a tensor needs {least.tensor:,} bytes and {whole.region}, which has most, {whole.bytes:,}")
        parts.append(f"{whole.region}: {least.tensor_name} bytes")
    if needs:
        told = "\n".join([f"the model does not fit target {target.name}: {'; '.join(needs)}", *parts])
        stack_alone = len(needs) == 1 and least.activations <= ram_bytes < least.activations + stack
        raise StageError(told, hint=("lower memory.stack, " if stack_alone else "") + remedy(target))


def _need(regions: list[str]) -> str:
    return "needs" if len(regions) == 1 else "need"


def _have(regions: list[str]) -> str:
    return "has" if len(regions) == 1 else "have"
