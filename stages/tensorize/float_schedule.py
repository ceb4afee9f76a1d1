"""Schedules TVM's float operators for a scalar core with an FPU.

TVM legalizes a fused convolution to a chain of blocks, each over the whole tensor:

    pad -> conv (reduction) -> bias -> relu

Element-wise blocks are inlined into their consumer, and what follows the reduction moves into its loops, so that no
intermediate tensor is stored. The reduction computes a small block of outputs at once, in registers:

    for y, x/bx, c/bc:              sum[bx][bc] = 0
        for ry, rx, rc:             sum[i][j] += input[x + i] * weights[c + j]     bx + bc loads for bx * bc products
        output[x + i][c + j] = relu(sum[i][j] + bias[c + j])

Padding stays a pass of its own: its copy is small against a branch for each product.
"""

from __future__ import annotations

from typing import Any

MOST_SUMS = 16
"""Sums kept at once. With bx + bc operands they fit the 32 registers of an FPU."""
_BLOCKS = ((4, 4), (2, 8), (1, 8), (3, 4), (4, 2), (2, 4), (4, 1), (1, 4), (2, 2), (3, 2), (1, 2), (3, 1), (2, 1))


def schedule_float(func: Any) -> Any:
    """The PrimFunc with element-wise blocks fused into the reductions around them, which run in register blocks."""
    import tvm
    from tvm import s_tir

    sch = s_tir.Schedule(tvm.IRModule({"main": func}))
    for block in _blocks(sch):
        if not _is_reduction(sch, block) and not _pads(sch, block) and _consumers(sch, block):
            _try(sch.compute_inline, block)
    for block in _blocks(sch):
        if _is_reduction(sch, block):
            _block_reduction(sch, block)
    return sch.mod["main"]


def _blocks(sch: Any) -> list[Any]:
    return list(sch.get_child_blocks(sch.get_sblock("root")))


def _consumers(sch: Any, block: Any) -> list[Any]:
    return list(sch.get_consumers(block))


def _is_reduction(sch: Any, block: Any) -> bool:
    return "reduce" in _kinds(sch, block)


def _kinds(sch: Any, block: Any) -> list[str]:
    """'spatial' or 'reduce' (or another kind) for each axis of the block."""
    from tvm import tirx

    names = {tirx.IterVar.DataPar: "spatial", tirx.IterVar.CommReduce: "reduce"}
    return [names.get(int(v.iter_type), "other") for v in sch.get(block).iter_vars]


def _pads(sch: Any, block: Any) -> bool:
    """Whether the block computes its value under a condition, as padding does."""
    import tvm_ffi
    from tvm.ir import Call

    found = []

    def visit(node: Any) -> None:
        if isinstance(node, Call) and str(getattr(node.op, "name", "")).endswith("if_then_else"):
            found.append(node)

    tvm_ffi.structural_walk(sch.get(block).body, visit)
    return bool(found)


def _block_reduction(sch: Any, block: Any) -> None:
    """Register-blocks one reduction and finishes its sums where they are."""
    kinds, loops = _kinds(sch, block), list(sch.get_loops(block))
    if len(loops) != len(kinds) or not {"spatial", "reduce"} >= set(kinds):
        return
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == "spatial"]
    reduction = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == "reduce"]
    if not spatial:
        return
    consumers = _consumers(sch, block)
    finish = consumers[0] if len(consumers) == 1 and not _is_reduction(sch, consumers[0]) else None
    if finish is None and not consumers:
        finish = sch.cache_write(block, 0, "global")
    sch.reorder(*spatial, *reduction)
    outer, inner = _split(sch, spatial)
    sch.reorder(*outer, *reduction, *inner)
    for loop in inner:
        sch.unroll(loop)
    if finish is not None and _try(sch.reverse_compute_at, finish, outer[-1]):
        for loop in sch.get_loops(finish)[len(outer) :]:
            sch.unroll(loop)
    start = sch.decompose_reduction(block, reduction[0])
    for loop in sch.get_loops(start)[len(outer) :]:
        sch.unroll(loop)


def _split(sch: Any, spatial: list[Any]) -> tuple[list[Any], list[Any]]:
    """The last two spatial loops in blocks; which blocks depends on what divides their extents."""
    extents = [int(sch.get(loop).extent) for loop in spatial[-2:]]
    if len(spatial) == 1:
        extents = [1, *extents]
    best = max(
        (
            pair
            for pair in _BLOCKS
            if extents[0] % pair[0] == 0 and extents[1] % pair[1] == 0 and pair[0] * pair[1] <= MOST_SUMS
        ),
        key=lambda pair: pair[0] * pair[1] / (pair[0] + pair[1]),
        default=(1, 1),
    )
    outer, inner = list(spatial[:-2]), []
    for loop, factor in zip(spatial[-2:], best[-len(spatial[-2:]) :], strict=True):
        around, within = sch.split(loop, [None, factor])
        outer.append(around)
        inner.append(within)
    return outer, inner


def _try(step: Any, *arguments: Any) -> bool:
    """Whether TVM allowed the step. A refusal only costs speed: the schedule is left as it was."""
    from tvm.s_tir import ScheduleError

    try:
        step(*arguments)
    except ScheduleError:
        return False
    return True
