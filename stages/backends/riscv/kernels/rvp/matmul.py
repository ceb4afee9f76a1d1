"""BATCH_MATMUL of int8."""

from collections.abc import Mapping
from math import prod
from typing import Any

from stages.backends.kernels.eight_bit import Range
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.matmul import Matmul8, MatrixTile, matrices
from stages.backends.kernels.structure import Structure
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.riscv.kernels.rvp.rounding import rounders
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

LAYER = Structure.of_header("rvp_matmul", __file__, "matmul.h")
_PACKED_BELOW = 3  # rows of x, where the rows of w are along its units


class RvpMatmul(Matmul8):
    """Four rows times four units with SMAQA.

    One or two rows are multiplied without packing the other operand.
    """

    name = "rvp.matmul_s8"
    estimate_error = 1.25
    function = "rvp_matmul_s8"

    def tile(self, target: Target) -> MatrixTile:
        return MatrixTile(4, 4, target.word_bits // 8)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        refused = super().why_not_layer(view, target)
        return refused or ("" if view.op.shift >= -31 else f"a right shift of {-view.op.shift}; the limit is 31")

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, (a, b), y = view.op, view.inputs, view.outputs[0]
        roundings = rounders(np.array([op.multiplier]), np.array([op.shift]), _range(view))
        wide = int(roundings.short[0] < 0)
        fields = {
            "rows": y.shape[-2],
            "depth": op.depth,
            "units": y.shape[-1],
            **dict(zip(("x_row", "x_step"), (1, a.shape[-1]) if op.adj_x else (a.shape[-1], 1), strict=True)),
            **dict(zip(("w_unit", "w_step"), (b.shape[-1], 1) if op.adj_y else (1, b.shape[-1]), strict=True)),
            "zero_point0": op.zero_points[0],
            "zero_point1": op.zero_points[1],
            "multiplier": op.multiplier,
            "rounder": int((roundings.wide if wide else roundings.short)[0]),
            "wide": wide,
            "clip": clip_word(view),
        }
        return {"matmul": LAYER.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return matrices(view, self.function, LAYER.shape, -(-self.scratch_bytes(view, target) // 4))

    def scratch_bytes(self, view: LayerView, target: Target) -> int:
        """Return the scratch of matmul.c; rows that may begin within a lane are copied."""
        register, units = target.word_bits // 8, view.outputs[0].shape[-1]
        deep, blocks = _whole(view.op.depth, register), -(-units // 4)
        if _is_direct(view):
            return deep * 4 + (view.op.depth * _whole(units, register) if units % 4 else 0)
        copied = [_whole(width, register) for width in _along_depth(view) if width % 4]
        return deep * 4 * (1 + blocks) + 16 * (1 + _whole(blocks, 2)) + view.op.depth * max(copied, default=0)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions of a matrix.

        A step of a tile takes 27, its 16 results 172 (RV32: 210). Packing four transposed rows takes 44 per register of
        units (36 where all rows begin at registers; RV32: 31).
        """
        register, (*batch, rows, units) = target.word_bits // 8, view.outputs[0].shape
        op, blocks, panels = view.op, -(-units // 4), -(-rows // 4)
        steps = -(-op.depth // register)
        if _is_direct(view):
            quad = 31 if register == 4 else 36 if units % 8 == 0 or units % 4 else 44
            total = rows * (-(-units // register) * (-(-op.depth // 4) * quad + 120) + 10 * steps)
        else:
            total = panels * blocks * (27 * steps + (172 if register == 8 else 210))
            total += _packing(rows, op.depth, register, across=op.adj_x)
            total += _packing(units, op.depth, register, across=not op.adj_y and units > 1)
        copied = [units] * (not op.adj_y and units > 1) + [rows] * (op.adj_x and rows > 1 and not _is_direct(view))
        total += sum(op.depth * (22 + 10 * -(-width // register)) for width in copied if width % 4)
        return float(prod(batch) * (total + 150))


def _packing(vectors: int, depth: int, register: int, *, across: bool) -> int:
    """Return the instructions that pack vectors, `across` their rows."""
    steps = -(-depth // register)
    if across:
        return -(-vectors // 4) * (steps * (54 if register == 8 else 34) + 100)
    return vectors * (steps * (6 if depth % register == 0 else 10) + 33)


def _is_direct(view: LayerView) -> bool:
    *_, rows, units = view.outputs[0].shape
    return rows < _PACKED_BELOW and not view.op.adj_y and units > 1


def _along_depth(view: LayerView) -> list[int]:
    """Elements per row of the operands whose rows are depth steps: x, then w."""
    (*_, rows, units), op = view.outputs[0].shape, view.op
    return [rows] * op.adj_x + [units] * (not op.adj_y)


def _whole(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _range(view: LayerView) -> Range:
    """Return the bounds of a sum."""
    ends = [(-128 - zero_point, 127 - zero_point) for zero_point in view.op.zero_points]
    products = [view.op.depth * a * b for a in ends[0] for b in ends[1]]
    return Range(np.array([min(products)]), np.array([max(products)]))
