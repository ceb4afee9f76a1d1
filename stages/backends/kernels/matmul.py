"""BATCH_MATMUL of int8: code that all families share (include/matmul_image.h)."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import why_not_nhwc
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.strides import offset, row_major, walk
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

PRODUCT = Structure.of_header("fl_matmul_image", __file__, "include/matmul_image.h")
_DEEPEST = (1 << 30) // 255**2  # twice a sum of so many products fits 32 bits


@dataclass(frozen=True)
class MatrixTile:
    """Rows, units and elements of the depth of one step. A packed element takes `wide` bytes."""

    rows: int
    units: int
    chunk: int
    wide: int = 1


class Matmul8(Kernel):
    """Matrix product, one pair of matrices at a time.

    The second operand is packed in scratch, then a few rows of the first at a time. `function` is the C function of the
    family. `prices` are instructions per chunk of a result's depth, per result, and per packed element.
    """

    ops: ClassVar[frozenset[str]] = frozenset({"batch_matmul"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("matmul.c",)
    function: ClassVar[str]
    prices: ClassVar[tuple[float, float, float]]

    @abstractmethod
    def tile(self, target: Target) -> MatrixTile:
        """The tile that the target's registers hold."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op = view.op
        for tensor in (*view.inputs, *view.outputs):
            if tensor.dtype != "int8":
                return f"tensor {tensor.name} is {tensor.dtype}; this kernel is for int8"
        if bad := why_not_nhwc(view):
            return bad
        if op.depth > _DEEPEST:
            return f"sums of {op.depth} products; this kernel is for {_DEEPEST} or fewer"
        return "" if op.shift < 0 else f"a shift of {op.shift}; this kernel is for negative shifts"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, (a, b), y = view.op, view.inputs, view.outputs[0]
        fields = {
            "rows": y.shape[-2],
            "depth": op.depth,
            "units": y.shape[-1],
            **dict(zip(("x_row", "x_step"), (1, a.shape[-1]) if op.adj_x else (a.shape[-1], 1), strict=True)),
            **dict(zip(("w_unit", "w_step"), (b.shape[-1], 1) if op.adj_y else (1, b.shape[-1]), strict=True)),
            "zero_point0": op.zero_points[0],
            "zero_point1": op.zero_points[1],
            "multiplier": op.multiplier,
            "shift": op.shift,
            "zero_point": op.output_zero_point,
            "low": op.act_min,
            "high": op.act_max,
        }
        return {"matmul": PRODUCT.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return matrices(view, self.function, PRODUCT.shape, -(-self.scratch_bytes(view, target) // 4))

    def scratch_bytes(self, view: LayerView, target: Target) -> int:
        """Return the bytes of packed operands, sums of a row of tiles, biases and row offsets."""
        tile, (units, _) = self.tile(target), self._filled(view, target)
        depth = -(-view.op.depth // tile.chunk) * tile.chunk
        return depth * (units + tile.rows) * tile.wide + 4 * (units * tile.rows + units + tile.rows)

    def _filled(self, view: LayerView, target: Target) -> tuple[int, int]:
        """Return units and rows, rounded up to whole tiles."""
        tile, (*_, rows, units) = self.tile(target), view.outputs[0].shape
        return -(-units // tile.units) * tile.units, -(-rows // tile.rows) * tile.rows

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        tile, (units, rows) = self.tile(target), self._filled(view, target)
        depth = -(-view.op.depth // tile.chunk) * tile.chunk
        chunk, result, packed = self.prices
        result_cost = chunk * depth / tile.chunk + result
        matrix_cost = result_cost * rows * units + packed * (rows + units) * depth + 100
        return matrix_cost * view.outputs[0].elements / (view.outputs[0].shape[-2] * view.outputs[0].shape[-1])


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
