"""Schedule TVM's float operators for a scalar core with an FPU.

TVM legalizes a fused convolution to a chain of blocks, each over the whole tensor:

    pad -> conv (reduction) -> bias -> relu

Element-wise blocks are inlined into their consumer, and blocks after the reduction move into its loops, so that no
intermediate tensor is stored. The reduction computes a small block of outputs at once, in registers:

    for y, x/bx, c/bc:              sum[bx][bc] = 0
        for ry, rx, rc:             sum[i][j] += input[x + i] * weights[c/bc][j]      bx + bc loads, bx * bc products
        output[x + i][c + j] = relu(sum[i][j] + bias[c + j])

Windows of one channel (depthwise convolution, pooling) have no such pair of axes. Without vectors, their columns rx are
written out for up to eight outputs side by side, which share pixels and weights.

If bx or bc does not divide its extent, emit splits the smaller last block from the loop (TVM's LoopPartition). The
order of additions in a sum never changes.

Padding is no copy of the image: sums skip it (stages.tensorize.float_padding).
"""

import math
from collections.abc import Collection
from typing import Any

from stages.support.lazy import s_tir, tirx, tvm, tvm_ffi
from stages.tensorize.float_padding import HINT, is_padding, is_sum, without_padding
from stages.tensorize.float_product import BLOCKS, SCALAR, FloatUnit, Packing, find_product, product_block
from stages.tensorize.float_vectors import with_float_vectors

_WINDOW_COLUMNS = 7  # of a window whose products are written out
_WINDOW_OUTPUTS = 8  # of such a window in a block: their sums and pixels fit the registers


def schedule_float(
    func: Any, constants: Collection[int] = (), unit: FloatUnit = SCALAR, *, finite: bool = False
) -> tuple[Any, list[Packing]]:
    """Return the PrimFunc with fused, register-blocked reductions, and its packings.

    constants  positions of constant parameters. Constants with a packing must be packed accordingly
    finite     all constants are finite, so sums may skip padding
    """
    sch = s_tir.Schedule(tvm.IRModule({"main": func}))
    skips = False
    for block in _blocks(sch):
        if not _is_reduction(sch, block) and not _pads(sch, block) and _consumers(sch, block):
            _try(sch.compute_inline, block)
        elif finite and _is_skippable(sch, block):
            skips |= _try(sch.compute_inline, block)
    packable = {position: func.params[position] for position in constants}
    is_vectorized = any(_is_vectorized(sch, block, unit) for block in _blocks(sch))
    reduces = any(_is_reduction(sch, block) for block in _blocks(sch))
    packings = [
        packing
        for block in _blocks(sch)
        if _is_reduction(sch, block)
        for packing in _block_reduction(sch, block, packable, unit)
    ]
    scheduled = without_padding(sch.mod["main"]) if skips else sch.mod["main"]
    if unit.lanes > 1:
        scheduled = with_vector_extremes(scheduled)
    if is_vectorized and not unit.vectorizes_extremes:
        scheduled = with_late_extremes(scheduled)
    if unit.flushes:
        scheduled = with_float_vectors(scheduled, is_vectorized=is_vectorized, reduces=reduces)
    return scheduled, packings


def _blocks(sch: Any) -> list[Any]:
    return list(sch.get_child_blocks(sch.get_sblock("root")))


def _consumers(sch: Any, block: Any) -> list[Any]:
    return list(sch.get_consumers(block))


def _is_reduction(sch: Any, block: Any) -> bool:
    return "reduce" in _kinds(sch, block)


def _kinds(sch: Any, block: Any) -> list[str]:
    """Return 'spatial', 'reduce' or 'other' for each axis of the block."""
    names = {tirx.IterVar.DataPar: "spatial", tirx.IterVar.CommReduce: "reduce"}
    return [names.get(int(v.iter_type), "other") for v in sch.get(block).iter_vars]


def _pads(sch: Any, block: Any) -> bool:
    """Return whether the block computes its value under a condition, as padding does."""
    from tvm.ir import Call

    conditions = []

    def visit(node: Any) -> None:
        if isinstance(node, Call) and str(getattr(node.op, "name", "")).endswith("if_then_else"):
            conditions.append(node)

    tvm_ffi.structural_walk(sch.get(block).body, visit)
    return bool(conditions)


def _is_skippable(sch: Any, block: Any) -> bool:
    """Return whether a block pads an image that only a sum reads."""
    consumers = _consumers(sch, block)
    sums = [reader for reader in consumers if _is_reduction(sch, reader) and is_sum(sch.get(reader))]
    return len(consumers) == len(sums) == 1 and is_padding(sch.get(block))


def _block_reduction(sch: Any, block: Any, packable: dict[int, Any], unit: FloatUnit) -> list[Packing]:
    """Register-block a reduction and finish its sums in place. Return its packings."""
    kinds, loops = _kinds(sch, block), list(sch.get_loops(block))
    if len(loops) != len(kinds) or not {"spatial", "reduce"} >= set(kinds):
        return []
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == "spatial"]
    reduction = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == "reduce"]
    if not spatial:
        sch.decompose_reduction(block, reduction[0])
        return []
    consumers = _consumers(sch, block)
    finish = consumers[0] if len(consumers) == 1 and not _is_reduction(sch, consumers[0]) else None
    if finish is None and not consumers:
        finish = sch.cache_write(block, 0, "global")
    reduction.sort(key=lambda loop: int(sch.get(loop).extent) > 1)
    steps = _steps(sch, block, reduction, unit)
    spatial, sizes, packings = _plan_blocks(sch, block, spatial, packable, unit, steps)
    sch.reorder(*spatial, *reduction)
    outer, inner = _split(sch, spatial, sizes)
    if steps > 1:
        reduction[-1], columns = sch.split(reduction[-1], [None, steps])
        inner = [columns, *inner]
    sch.reorder(*outer, *reduction, *inner)
    for loop in inner:
        sch.unroll(loop)
    if finish is not None and _try(sch.reverse_compute_at, finish, outer[-1]):
        for loop in sch.get_loops(finish)[len(outer) :]:
            sch.unroll(loop)
    start = sch.decompose_reduction(block, reduction[0])
    for loop in sch.get_loops(start)[len(outer) :]:
        sch.unroll(loop)
    return packings


def _plan_blocks(
    sch: Any, block: Any, spatial: list[Any], packable: dict[int, Any], unit: FloatUnit, steps: int
) -> tuple[list[Any], tuple[int, ...], list[Packing]]:
    """Return the spatial loops in their new order, block sizes, and packings."""
    product = find_product(sch.get(block))
    extents = [int(sch.get(loop).extent) for loop in spatial]
    if product is None and steps > 1 and len(extents) > 1:
        return spatial, _window_block(extents), []
    if product is None:
        return spatial, _dividing_block(extents, unit, _is_vectorized(sch, block, unit)), []
    pair = [position for position in (product.row, product.column) if position is not None]
    rows = 1 if product.row is None else extents[product.row]
    size = product_block(rows, extents[product.column], unit)
    packings = []
    if product.axis is not None and extents[product.column] % size[1] == 0:
        for position, param in packable.items():
            if product.weights.same_as(param):
                packing = Packing(position, product.axis, size[1])
                sch.transform_layout(block, ("read", product.operand), packing.indices)
                packings.append(packing)
    ordered = [loop for position, loop in enumerate(spatial) if position not in pair]
    return ordered + [spatial[position] for position in pair], size[-len(pair) :], packings


def _is_vectorized(sch: Any, block: Any, unit: FloatUnit) -> bool:
    """Return whether the block sums several vectors of neighbouring outputs."""
    if unit.lanes == 1 or not _is_reduction(sch, block) or _compares(sch, block):
        return False
    node = sch.get(block)
    product, axes = find_product(node), [v.dom.extent for v in node.iter_vars if int(v.iter_type) == 0]
    return bool(axes) and int(axes[-1 if product is None else product.column]) >= 2 * unit.lanes


def _compares(sch: Any, block: Any) -> bool:
    """Return whether the block computes maxima or minima."""
    extremes = []
    tvm_ffi.structural_walk(
        sch.get(block).body, lambda node: extremes.append(node) if isinstance(node, tirx.Max | tirx.Min) else None
    )
    return bool(extremes)


def _steps(sch: Any, block: Any, reduction: list[Any], unit: FloatUnit) -> int:
    """Return the steps of the last reduction loop that are written out.

    All columns of a window. Four steps of a product, where registers are allocated in the order of the source.
    """
    extents = [int(sch.get(loop).extent) for loop in reduction]
    last = extents[-1]
    if find_product(sch.get(block)) is not None:
        return 4 if unit.keeps_order and last > 4 and last % 4 == 0 else 1
    is_window = unit.lanes == 1 and sum(extent > 1 for extent in extents) <= 2
    return last if is_window and last <= _WINDOW_COLUMNS else 1


def _window_block(extents: list[int]) -> tuple[int, int]:
    """Return the block of a window whose columns are written out.

    Outputs side by side share pixels and weights, those of other channels share nothing.
    """
    width, channels = extents[-2:]
    columns = math.ceil(width / math.ceil(width / _WINDOW_OUTPUTS))
    return columns, next(size for size in range(_WINDOW_OUTPUTS // columns, 0, -1) if channels % size == 0)


def _dividing_block(extents: list[int], unit: FloatUnit, is_vectorized: bool) -> tuple[int, ...]:
    """Return the largest block that divides the last two extents.

    For MVE two to five vectors; if none divide the last extent, as many of four as fit.
    """
    last = [1, *extents][-2:]
    if is_vectorized and not unit.vectorizes_extremes:
        vectors = next((n for n in (5, 4, 3, 2) if last[1] % (n * unit.lanes) == 0), min(last[1] // unit.lanes, 4))
        return (1, vectors * unit.lanes)[-min(len(extents), 2) :]
    block = max(
        (pair for pair in BLOCKS if last[0] % pair[0] == 0 and last[1] % pair[1] == 0),
        key=lambda pair: pair[0] * pair[1] / (pair[0] + pair[1]),
    )
    return block[-min(len(extents), 2) :]


def _split(sch: Any, spatial: list[Any], sizes: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
    """Split the last loops by `sizes`. Return the loops over blocks and the loops in a block."""
    outer, inner = list(spatial[: -len(sizes)]), []
    for loop, size in zip(spatial[-len(sizes) :], sizes, strict=True):
        ragged = int(sch.get(loop).extent) % size != 0
        around, within = sch.split(loop, [None, size])
        if ragged:
            sch.annotate(around, HINT, 1)
        outer.append(around)
        inner.append(within)
    return outer, inner


def _try(step: Any, *arguments: Any) -> bool:
    """Apply a schedule step; return whether TVM accepted it. A refusal only costs speed."""
    from tvm.s_tir import ScheduleError

    try:
        step(*arguments)
    except ScheduleError:
        return False
    return True


# Minimum and maximum of floats as functions of C, which compilers vectorize. A choice between two values, as ReLU's, is
# a branch for GCC, and keeps it from vectorizing the sums before it.


def with_vector_extremes(func: Any) -> Any:
    """Return the PrimFunc with fmaxf and fminf for extremes of a float32 value and a constant.

    They are exact for the constants that are replaced. `v > c ? v : c` is c for a NaN v, as with fmaxf. Zeros of
    different signs differ only for a maximum with -0 and a minimum with 0.
    """

    def replace(node: Any) -> Any:
        if isinstance(node, tirx.Max | tirx.Min) and str(node.ty.dtype) == "float32":
            constant = float(node.b.value) if isinstance(node.b, tirx.FloatImm) else math.nan
            is_max = isinstance(node, tirx.Max)
            signed_zero = constant == 0 and (math.copysign(1, constant) > 0) != is_max
            if not math.isnan(constant) and not signed_zero:
                return tirx.call_pure_extern("float32", "fmaxf" if is_max else "fminf", node.a, node.b)
        return node

    return func.with_body(tvm_ffi.structural_map(func.body, replace))


def with_late_extremes(func: Any) -> Any:
    """Return the PrimFunc with minimum and maximum of similar stores in a loop at the end.

    GCC vectorizes neither choices nor fmaxf for MVE, and so not the sums before them.

    `func` is a result of `with_vector_extremes`.
    """
    from tvm.s_tir import SBlock, SBlockRealize

    stores: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, tirx.BufferStore) and _extremes(node.value):
            stores.append(node)

    tvm_ffi.structural_walk(func.body, visit)
    chains = {tuple(_extremes(node.value)) for node in stores}
    if len(chains) != 1 or any(not node.buffer.same_as(stores[0].buffer) for node in stores):
        return func
    buffer, (chain,) = stores[0].buffer, chains

    def without(node: Any) -> Any:
        if not isinstance(node, tirx.BufferStore) or not _extremes(node.value):
            return node
        value = node.value
        for _ in chain:
            value = value.args[1]
        return tirx.BufferStore(node.buffer, value, node.indices)

    variables = [tirx.Var(f"i{axis}", "int32") for axis in range(len(buffer.shape))]
    value = tirx.BufferLoad(buffer, variables)
    for name, constant in reversed(chain):
        value = tirx.call_pure_extern("float32", name, value, tirx.FloatImm("float32", constant))
    loop: Any = tirx.BufferStore(buffer, value, variables)
    for variable, extent in zip(reversed(variables), reversed(buffer.shape), strict=True):
        loop = tirx.For(variable, 0, extent, tirx.ForKind.SERIAL, loop)
    body = tvm_ffi.structural_map(func.body, without)
    root = body.block
    parts = (root.iter_vars, root.reads, root.writes, root.name_hint, tirx.SeqStmt([root.body, loop]))
    block = SBlock(*parts, root.init, root.alloc_buffers, root.match_buffers, root.annotations)
    return func.with_body(SBlockRealize(body.iter_values, body.predicate, block))


def _extremes(value: Any) -> list[tuple[str, float]]:
    """Return function and constant of the extremes around a value, the outermost first."""
    from tvm.ir import Call

    extremes = []
    while (
        isinstance(value, Call) and len(value.args) == 3 and getattr(value.args[0], "value", "") in ("fmaxf", "fminf")
    ):
        extremes.append((value.args[0].value, float(value.args[2].value)))
        value = value.args[1]
    return extremes
