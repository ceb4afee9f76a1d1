"""TIR of BATCH_MATMUL: loops over batches and rows around the block of one row."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import int64, output, requantize, widen
from stages.backends.kernels.tir.strides import offset, row_major, walk
from stages.ir.graph import LayerView, Tensor


def batch_matmul(view: LayerView, parameters: tuple[int, ...], steps: tuple[int, int, int]) -> Lowering:
    """Return the layer. `parameters` is the shape of the C function's structure.

    steps: along x, between units of w, along w.
    """
    op, (a, b), y = view.op, view.inputs, view.outputs[0]
    *batch, rows, units = y.shape
    depth, (x_step, w_unit, w_step) = op.depth, steps
    row_step = 1 if op.adj_x else a.shape[-1]
    dtype, sums = a.dtype, "int32" if a.dtype == "int8" else "int64"

    def scaled(total: Any) -> Any:
        if sums == "int32":
            return requantize(total, op.multiplier, op.shift, op.rounding)
        reduced = min(op.multiplier + (1 << 15) >> 16, (1 << 15) - 1)
        product = total * T.int64(reduced) + T.int64(1 << (14 - op.shift))
        return T.Cast("int32", T.shift_right(product, T.int64(15 - op.shift)))

    def meaning(block: Any) -> None:
        with loop(("j", units)) as j:
            store(block.acc, T.Cast(sums, 0), 0)
            with loop(("k", depth)) as k:
                value = widen(block.x[k * x_step]) - op.zero_points[0]
                factor = widen(block.w[j * w_unit + k * w_step]) - op.zero_points[1]
                product = value * factor
                store(block.acc, block.acc[0] + (product if sums == "int32" else int64(product)), 0)
            store(block.y, output(view, scaled(block.acc[0])), j)

    operands = (
        Operand("x", ((depth - 1) * x_step + 1,), dtype),
        Operand("w", ((units - 1) * w_unit + (depth - 1) * w_step + 1,), dtype),
        Operand("matmul", parameters, "int32"),
        Operand("y", (units,), dtype, "w"),
        Operand("acc", (1,), sums, "rw"),
    )
    function = "fl_matmul_row_s8" if dtype == "int8" else "fl_matmul_row_s16"
    row = Block("row", operands, meaning, function, lambda buffers: [buffers.x, buffers.w, buffers.y, buffers.matmul])
    axes = walk((*batch, rows), *_strides(batch, y, a, b, row_step))
    with Function("batch_matmul") as f:
        first, second = f.input(0, (a.elements,), dtype), f.input(1, (b.elements,), dtype)
        fields = f.constant("matmul", parameters, "int32")
        out, acc = f.output(0, (y.elements,), dtype), f.scratch("acc", (1,), sums)
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(axes))) as at:
            starts = [offset(at, axes, number) for number in range(3)]
            regions = {"x": (first, starts[1]), "w": (second, starts[2]), "y": (out, starts[0])}
            f.place(row, **regions, matmul=fields, acc=acc)
    return f.lowering()


def _strides(batch: list[int], y: Tensor, a: Tensor, b: Tensor, row_step: int) -> list[tuple[int, ...]]:
    """Return strides of output, x and w along batch axes and rows. 0 where one repeats."""
    strides = [row_major(y.shape)[:-1]]
    for tensor, last in ((a, row_step), (b, 0)):
        tensor_strides, lead = row_major(tensor.shape), len(batch) - (len(tensor.shape) - 2)
        steps = (0 if size == 1 else step for size, step in zip(tensor.shape[:-2], tensor_strides, strict=False))
        strides.append((*(0,) * lead, *steps, last))
    return strides
