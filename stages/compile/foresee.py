"""Models that no kernel, layout or plan of the arena can bring into the target's memory."""

from __future__ import annotations

from stages.base import StageError
from stages.compile.firmware import remedy
from stages.models.least_memory import LeastMemory
from stages.targets.spec import Target


def check_fits(least: LeastMemory, target: Target) -> None:
    """Raises StageError, with the sizes and where they come from, when the target's memory is surely too small."""
    memory = target.memory
    if memory is None:
        return
    needs, parts = [], []
    rom, ram = memory.home("weights"), memory.home("arena")
    weights, arena = memory.regions[rom], memory.regions[ram]
    if least.weights > weights.length:
        needs.append(f"{rom} needs {least.weights:,} bytes or more and has {weights.length:,}")
        parts.append(f"{rom}: the weights of {least.weighted} layers, most those of {least.heaviest} bytes")
    stack = memory.stack if memory.home("stack") == ram else 0
    if least.activations + stack > arena.length:
        needs.append(f"{ram} needs {least.activations + stack:,} bytes or more and has {arena.length:,}")
        parts.append(f"{ram}: {least.largest} bytes" + (f"; stack {stack:,}" if stack else ""))
    if needs:
        told = "\n".join([f"the model does not fit target {target.name}: {'; '.join(needs)}", *parts])
        raise StageError(told, hint=remedy(target))
