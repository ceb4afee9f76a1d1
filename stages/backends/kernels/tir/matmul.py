"""TIR of matrix products: loops over the batches around the block of one product."""

from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.strides import offset, row_major, walk
from stages.ir.graph import LayerView


def matrices(view: LayerView, function: str, parameters: tuple[int, ...], words: int) -> Lowering:
    """Return the products as calls of `function`, one at a time.

    `parameters` is the shape of the function's structure. The function gets `words` words of scratch.
    """
    op, (a, b), y = view.op, view.inputs, view.outputs[0]
    *batch, rows, units = y.shape
    left, right = (tensor.shape[-2:] for tensor in (a, b))

    def meaning(block: Any) -> None:
        with loop(("i", rows), ("j", units)) as (i, j):
            store(block.acc, 0, 0)
            with loop(("k", op.depth)) as k:
                value = block.x[(k, i) if op.adj_x else (i, k)]
                factor = block.w[(j, k) if op.adj_y else (k, j)]
                product = (widen(value) - op.zero_points[0]) * (widen(factor) - op.zero_points[1])
                store(block.acc, block.acc[0] + product, 0)
            store(block.y, output(view, requantize(block.acc[0], op.multiplier, op.shift, op.rounding)), i, j)

    operands = (
        Operand("x", left, "int8"),
        Operand("w", right, "int8"),
        Operand("matmul", parameters, "int32"),
        Operand("y", (rows, units), "int8", "w"),
        Operand("scratch", (words,), "int32", "rw"),
        accumulator(),
    )
    product = Block("product", operands, meaning, function, lambda b: [b.x, b.w, b.y, b.scratch, b.matmul])
    strides = [repeated_strides(tensor.shape[:-2], len(batch)) for tensor in (y, a, b)]
    axes = walk(tuple(batch), *strides)
    shapes = [(tensor.elements // (m * n), m, n) for tensor, (m, n) in ((a, left), (b, right), (y, (rows, units)))]
    with Function("batch_matmul") as f:
        first, second = f.input(0, shapes[0], "int8"), f.input(1, shapes[1], "int8")
        fields = f.constant("matmul", parameters, "int32")
        out = f.output(0, shapes[2], "int8")
        scratch_buffers = {"scratch": f.scratch("packed", (words,), "int32"), "acc": f.scratch("acc", (1,), "int32")}
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(axes))) as at:
            starts = [offset(at, axes, number) for number in range(3)]
            regions = {"x": (first, starts[1], 0, 0), "w": (second, starts[2], 0, 0), "y": (out, starts[0], 0, 0)}
            f.place(product, **regions, matmul=fields, **scratch_buffers)
    return f.lowering()


def repeated_strides(batch: tuple[int, ...], axes: int) -> tuple[int, ...]:
    """Return strides of a tensor's batch axes, in matrices, along `axes` of the output.

    0 where a matrix repeats.
    """
    batch_strides = row_major(batch)
    return (0,) * (axes - len(batch)) + tuple(
        0 if size == 1 else step for size, step in zip(batch, batch_strides, strict=True)
    )
