"""The L1 memory of a plan: resident tensors and buffers of programs, with their lifetimes."""

from collections.abc import Collection, Mapping

from stages.ir.graph import Graph
from stages.lower.arena.liveness import liveness, scratch_name
from stages.lower.arena.planner import Buffer
from stages.lower.offload.program import Attachment, Program


def begins(programs: Mapping[int, Program]) -> dict[str, int]:
    """Return the layer from which each buffer with early transfers is in use."""
    return {
        scratch_name(index, buffer.name): program.during
        for index, program in programs.items()
        for buffer in program.buffers
        if buffer.ahead and program.during is not None
    }


def fixed_in_l1(attachment: Attachment | None, programs: Mapping[int, Program]) -> dict[str, frozenset[str]]:
    """Return, by region, the names of the buffers that lie there; empty without an accelerator."""
    if attachment is None:
        return {}
    scratch = {scratch_name(index, buffer.name) for index, program in programs.items() for buffer in program.buffers}
    return {attachment.region: frozenset(scratch | set(attachment.resident))}


def buffers_in_l1(
    graph: Graph, overlaid: frozenset[int], resident: Collection[str], programs: Mapping[int, Program]
) -> tuple[Buffer, ...]:
    """Return the buffers in L1. `resident` are names of tensors' buffers."""
    scratch = {index: {buffer.name: buffer.bytes for buffer in program.buffers} for index, program in programs.items()}
    lives = liveness(graph, scratch, overlaid, begins(programs))
    in_l1 = {scratch_name(index, name) for index, sizes in scratch.items() for name in sizes} | set(resident)
    return tuple(buffer for buffer in lives.buffers if buffer.name in in_l1)
