"""BATCH_MATMUL of two tensors."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.costs import costs_of
from stages.backends.generic.kernels.generic.parameters import epilogue
from stages.backends.kernels.eight_bit import not_eight_bit, too_deep, why_not_nhwc
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import int64, output, requantize, widen
from stages.backends.kernels.tir.strides import offset, row_major, walk
from stages.backends.targets.spec import Target
from stages.ir.arithmetic.fixed_point import upper_half
from stages.ir.arrays import Array
from stages.ir.graph import LayerView, Tensor
from stages.support.lazy import T

MATMUL = Structure.of_header("fl_matmul", __file__, "matmul.h")
# Products of two differences of int8 that an int32 sum takes.
_MOST = (1 << 31) // 255**2
_MOST_WIDE = (1 << 17) - 1  # of 2^30 at most each: sums have less than 48 bits


class _Product(Kernel):
    ops: ClassVar[frozenset[str]] = frozenset({"batch_matmul"})
    headers: ClassVar[tuple[str, ...]] = ("matmul.h",)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, (x_step, w_unit, w_step) = view.op, steps(view)
        fields = {
            "depth": op.depth,
            "units": view.outputs[0].shape[-1],
            "x_step": x_step,
            "w_unit": w_unit,
            "w_step": w_step,
            "zero_point0": op.zero_points[0],
            "zero_point1": op.zero_points[1],
            "multiplier": self.multiplier(op.multiplier),
            "shift": op.shift,
        }
        return {"matmul": MATMUL.of(fields | epilogue(op, op.rounding))}

    def multiplier(self, whole: int) -> int:
        """Return the multiplier in the form that the C uses."""
        return whole

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return batch_matmul(view, MATMUL.shape, steps(view))


class BatchMatmul(_Product):
    """A row of the output at a time, four sums together."""

    name = "generic.batch_matmul"
    estimate_error = 1.25
    sources = ("matmul.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := not_eight_bit(view) or why_not_nhwc(view) or too_deep(view.op.depth):
            return bad
        if view.inputs[0].dtype != "int8":
            return f"{view.inputs[0].dtype}; this kernel is for int8"
        depth = view.op.depth
        return f"sums of {depth} products; int32 holds {_MOST}" if depth > _MOST else ""

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return counted costs: for four units together `batch_product` per product and 33 per sum.

        A remaining unit costs 8.5 per product and 55 per sum. The sum of a row, needed for the second operand's zero
        point, costs 6.5 per element.
        """
        op, y = view.op, view.outputs[0]
        fours, rest = divmod(y.shape[-1], 4)
        row = fours * 4 * (costs_of(target).batch_product * op.depth + 33) + rest * (8.5 * op.depth + 55) + 100
        row += 6.5 * op.depth if op.zero_points[1] else 0.0
        return y.elements // y.shape[-1] * row + 30


class BatchMatmul16(_Product):
    """BATCH_MATMUL on int16, a row of the output at a time, two 64-bit sums together."""

    name = "generic.batch_matmul16"
    sources = ("matmul16.c",)
    bits = 16
    roundings: ClassVar[frozenset[str]] = frozenset({"wide"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := why_not_sixteen(view) or why_not_nhwc(view):
            return bad
        depth = view.op.depth
        return f"sums of {depth} products; 48 bits hold {_MOST_WIDE}" if depth > _MOST_WIDE else ""

    def multiplier(self, whole: int) -> int:
        return int(upper_half(whole))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 8 instructions per product, 40 per sum."""
        return view.outputs[0].elements * (8.0 * view.op.depth + 40)


def steps(view: LayerView) -> tuple[int, int, int]:
    """Return element steps: along the depth of x, between units of w, and along the depth of w."""
    (a, b), op = view.inputs, view.op
    return (a.shape[-1] if op.adj_x else 1), *((b.shape[-1], 1) if op.adj_y else (1, b.shape[-1]))


KERNELS: tuple[type[Kernel], ...] = (BatchMatmul, BatchMatmul16)


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
