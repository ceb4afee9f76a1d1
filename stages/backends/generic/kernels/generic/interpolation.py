"""RESIZE_BILINEAR."""

from collections.abc import Sequence
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops8
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.strides import logical_strides
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.support.lazy import T


class ResizeBilinear(Loops8):
    """RESIZE_BILINEAR one pixel at a time: its four weights, then its channels."""

    name = "generic.resize_bilinear"
    row_alignment = 1
    estimate_error = 4
    ops: ClassVar[frozenset[str]] = frozenset({"resize_bilinear"})

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return resize_bilinear(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return per element 18 instructions (int8), 16 (uint8, FPU) or 700 (uint8, no FPU)."""
        element_cost = 18.0 if view.inputs[0].dtype == "int8" else 16.0 if target.fpu else 700.0
        return element_cost * view.outputs[0].elements


class EvenResize(ResizeBilinear):
    """RESIZE_BILINEAR on int8 that rounds halves to even."""

    name = "generic.even_resize_bilinear"
    row_alignment = 1
    ops: ClassVar[frozenset[str]] = frozenset({"even_resize_bilinear"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        dtype = view.inputs[0].dtype
        return "" if dtype == "int8" else f"{dtype}; this kernel is for int8"


KERNELS: tuple[type[Kernel], ...] = (ResizeBilinear, EvenResize)


_WHOLE = 1024  # 1 as a share of int8
_CORNERS = tuple(f"corner{number}" for number in range(4))
_WEIGHTS = tuple(f"weight{number}" for number in range(4))


def resize_bilinear(view: LayerView) -> Lowering:
    """Return the formula of `stages.ir.operators.interpolation`.

    Sums of int8 are below 2^30.

    For uint8, each corner is weighted in two steps as in the reference: by its row (`weight0`, `weight1`), then by its
    column (`weight2`, `weight3`).
    """
    x, y = view.inputs[0], view.outputs[0]
    batch, height, width, channels = y.shape
    integer = x.dtype == "int8"
    kind = "int32" if integer else "float32"
    unit = T.int32(_WHOLE) if integer else T.float32(1)
    source, target = logical_strides(x), logical_strides(y)

    def pixel(b: Any, n: Any, row: Any, column: Any) -> None:
        for number, corner in enumerate(_CORNERS):  # r0 c0, r1 c0, r0 c1, r1 c1
            place = b.rows[row, number % 2] * source[1] + b.columns[column, number // 2] * source[2]
            store(getattr(b, corner), place + n * source[0], 0)
        p, q = b.row_shares[row], b.column_shares[column]
        if integer:
            shares = ((unit - p) * (unit - q), p * (unit - q), (unit - p) * q, p * q)
        else:
            shares = (unit - p, p, unit - q, q)
        for weight, value in zip(_WEIGHTS, shares, strict=True):
            store(getattr(b, weight), value, 0)

    def element(b: Any, channel: Any) -> Any:
        corners = [T.Cast(kind, b.x[getattr(b, corner)[0] + channel * source[3]]) for corner in _CORNERS]
        weights = [getattr(b, weight)[0] for weight in _WEIGHTS]
        if hasattr(view.op, "zero_point"):
            return _to_even(corners, weights, view.op.zero_point)
        return _rounded(corners, weights) if integer else _cut_off(corners, weights)

    def meaning(b: Any) -> None:
        with loop(("n", batch), ("oy", height), ("ox", width)) as (n, row, column):
            pixel(b, n, row, column)
            with loop(("c", channels)) as c:
                place = n * target[0] + row * target[1] + column * target[2] + c * target[3]
                store(b.y, element(b, c), place)

    tables = {
        "rows": Operand("rows", (height, 2), "int32"),
        "columns": Operand("columns", (width, 2), "int32"),
        "row_shares": Operand("row_shares", (height,), kind),
        "column_shares": Operand("column_shares", (width,), kind),
    }
    cells = [*(accumulator(corner) for corner in _CORNERS), *(Operand(name, (1,), kind, "rw") for name in _WEIGHTS)]
    operands = (
        Operand("x", (x.elements,), x.dtype),
        *tables.values(),
        Operand("y", (y.elements,), y.dtype, "w"),
        *cells,
    )
    with Function(view.op.op) as f:
        source_buffer = f.input(0, (x.elements,), x.dtype)
        constants = {name: f.constant(name, operand.shape, operand.dtype) for name, operand in tables.items()}
        out = f.output(0, (y.elements,), y.dtype)
        scratch = {cell.name: f.scratch(cell.name, cell.shape, cell.dtype) for cell in cells}
        f.place(Block("resize", operands, meaning), x=source_buffer, y=out, **constants, **scratch)
    return f.lowering()


def _rounded(corners: Sequence[Any], weights: Sequence[Any]) -> Any:
    total = sum((corner * weight for corner, weight in zip(corners, weights, strict=True)), start=T.int32(0))
    # Adding half rounds halves up; for a negative total, one less rounds them down, away from zero.
    return T.Cast("int8", (total + (total >> T.int32(31)) + T.int32(1 << 19)) >> T.int32(20))


def _to_even(corners: Sequence[Any], weights: Sequence[Any], zero_point: int) -> Any:
    """Return the rounded value.

    Half less one is added, and one more if the difference to the zero point is odd.
    """
    total = sum((corner * weight for corner, weight in zip(corners, weights, strict=True)), start=T.int32(0))
    odd = T.bitwise_and((total >> T.int32(20)) - zero_point, T.int32(1))
    return T.Cast("int8", (total + ((1 << 19) - 1) + odd) >> T.int32(20))


def _cut_off(corners: Sequence[Any], weights: Sequence[Any]) -> Any:
    upper, lower, left, right = weights
    total = corners[0] * upper * left + corners[1] * lower * left
    total = total + corners[2] * upper * right + corners[3] * lower * right
    return T.Cast("uint8", T.Cast("int32", total + T.float32(0.5)))
