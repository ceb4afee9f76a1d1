"""TIR of element-wise layers: outer loops around the block `row` of one run of the output."""

from collections.abc import Sequence
from typing import Any

from stages.backends.generic.kernels.generic.parameters import ADD, MUL, REQUANTIZE
from stages.backends.generic.kernels.generic.sixteen_tir import elements
from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.addition import rescaled_sum
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.elementwise import elementwise_layer
from stages.backends.kernels.tir.fixed_point import (
    clamp,
    divide_by_pot,
    high_mul,
    int64,
    output,
    requantize,
    select,
    widen,
)
from stages.backends.kernels.tir.rectified import rectified
from stages.ir.graph import LayerView
from stages.support.lazy import T, tirx

_BIGGEST = 1024.0  # beyond every 8-bit value, whatever the zero point


def add(view: LayerView) -> Lowering:
    """Lower ADD or SUB."""

    def value(x: Sequence[Any], b: Any) -> Any:
        return output(view, rescaled_sum(view.op, x))

    return elementwise_layer(
        view, f"fl_add_{SUFFIX[view.inputs[0].dtype]}", value, {"add": Operand("add", ADD.shape, "int32")}
    )


def mul(view: LayerView) -> Lowering:
    """Lower MUL."""
    op = view.op

    def value(x: Sequence[Any], b: Any) -> Any:
        product = (widen(x[0]) - op.zero_points[0]) * (widen(x[1]) - op.zero_points[1])
        return output(view, requantize(product, op.output_multiplier, op.output_shift, op.rounding))

    return elementwise_layer(
        view, f"fl_mul_{SUFFIX[view.inputs[0].dtype]}", value, {"mul": Operand("mul", MUL.shape, "int32")}
    )


def prelu(view: LayerView, parameters: tuple[int, ...]) -> Lowering:
    """Return PRELU. `parameters` is the shape of the C function's structure."""

    def value(x: Sequence[Any], b: Any) -> Any:
        return output(view, rectified(view.op, x))

    function = f"fl_prelu_{SUFFIX[view.inputs[0].dtype]}"
    return elementwise_layer(view, function, value, {"prelu": Operand("prelu", parameters, "int32")})


def squared_difference(view: LayerView) -> Lowering:
    """Return the squared difference. A difference is below 2^15, so its square fits."""
    op = view.op

    def value(x: Sequence[Any], b: Any) -> Any:
        shifted = [(widen(x[i]) - op.zero_points[i]) * (1 << op.left_shift) for i in range(2)]
        first, second = (requantize(shifted[i], op.multipliers[i], op.shifts[i], op.rounding) for i in range(2))
        square = (first - second) * (first - second)
        return output(view, requantize(square, op.output_multiplier, op.output_shift, op.rounding))

    return elementwise_layer(view, "", value, {})


def div(view: LayerView) -> Lowering:
    """Return the formula of `stages.ir.operators.arithmetic.Div`.

    It looks up tables, so TVM cannot prove indices equal.
    """
    op = view.op

    def value(x: Sequence[Any], b: Any) -> Any:
        dividend, divisor = (widen(x[i]) - op.zero_points[i] for i in range(2))
        v = tirx.Select(divisor < 0, -dividend, dividend)
        d = tirx.Select(divisor < 0, -divisor, divisor)
        room = 31 - b.bits[tirx.Select(v < 0, -1 - v, v)]
        quotient = high_mul(int64(v) * T.shift_left(T.int64(1), int64(room)), b.inverse[d])
        scaled = high_mul(quotient, op.output_multiplier)
        exponent = room + b.bits[d] - (1 + op.output_shift)
        undefined = T.shift_right(scaled, int64(T.bitwise_and(exponent, 31))) + T.Cast("int64", scaled >= T.int64(0))
        divided = select(exponent > 31, undefined, divide_by_pot(scaled, T.min(exponent, 31)))
        wrapped = T.Cast("int32", divided + T.int64(op.output_zero_point))
        return T.Cast(view.outputs[0].dtype, clamp(wrapped, op.act_min, op.act_max))

    tables = {name: Operand(name, (256,), "int32") for name in ("inverse", "bits")}
    return elementwise_layer(view, "", value, tables)


def table(view: LayerView) -> Lowering:
    """Lower a function of one 8-bit value by its table."""

    def index(x: Sequence[Any]) -> Any:
        return T.bitwise_and(widen(x[0]), 255)

    def value(x: Sequence[Any], b: Any) -> Any:
        return b.table[x[0]]

    return elementwise_layer(
        view, "fl_table", value, {"table": Operand("table", (256,), view.outputs[0].dtype)}, index=index
    )


def requantize_layer(view: LayerView) -> Lowering:
    """Lower a change of scale and zero point."""
    op = view.op

    def value(x: Sequence[Any], b: Any) -> Any:
        return output(view, requantize(widen(x[0]) - op.input_zero_point, op.multiplier, op.shift, op.rounding))

    function = f"fl_requantize_{SUFFIX[view.inputs[0].dtype]}"
    return elementwise_layer(view, function, value, {"requantize": Operand("requantize", REQUANTIZE.shape, "int32")})


def flip(view: LayerView) -> Lowering:
    """Return the toggled top bits of all bytes, in memory order."""
    x, y = view.inputs[0], view.outputs[0]
    more = 128 if y.dtype == "uint8" else -128

    def meaning(b: Any) -> None:
        with loop(("i", x.elements)) as i:
            store(b.y, T.Cast(y.dtype, widen(b.x[i]) + more), i)

    operands = (Operand("x", (x.elements,), x.dtype), Operand("y", (x.elements,), y.dtype, "w"))
    block = Block("bytes", operands, meaning, "fl_flip_top_bits", lambda b: [b.x, b.y, x.elements])
    with Function("flip") as f:
        f.place(block, x=f.input(0, (x.elements,), x.dtype), y=f.output(0, (x.elements,), y.dtype))
    return f.lowering()


def quantize(view: LayerView) -> Lowering:
    """Return the quotient rounded to int32, halves away from zero.

    It is truncated, then moved one away from zero if the remainder is a half or more; with `halves: even`, a half does
    not move an even number.
    """
    op = view.op
    scale = T.float32(op.scale)

    def value(x: Sequence[Any], b: Any) -> Any:
        ratio = tirx.Select(x[0] / scale > T.float32(-_BIGGEST), x[0] / scale, T.float32(-_BIGGEST))
        bounded = tirx.Select(ratio < T.float32(_BIGGEST), ratio, T.float32(_BIGGEST))
        integer = T.Cast("int32", bounded)
        rest = bounded - T.Cast("float32", integer)
        up, down = T.Cast("int32", rest >= T.float32(0.5)), T.Cast("int32", rest <= T.float32(-0.5))
        if op.halves == "even":
            odd = T.bitwise_and(integer, 1)
            up = tirx.Select(rest == T.float32(0.5), odd, up)
            down = tirx.Select(rest == T.float32(-0.5), odd, down)
        return output(view, integer + up - down)

    constants = [scale, op.output_zero_point, op.act_min, op.act_max]
    return elementwise_layer(view, "fl_quantize" if op.halves == "away" else "fl_quantize_even", value, {}, constants)


def dequantize(view: LayerView) -> Lowering:
    """Lower DEQUANTIZE: integers to float32."""
    op = view.op
    scale = T.float32(op.scale)

    def value(x: Sequence[Any], b: Any) -> Any:
        return scale * T.Cast("float32", widen(x[0]) - op.input_zero_point)

    function = f"fl_dequantize_{SUFFIX[view.inputs[0].dtype]}"
    return elementwise_layer(view, function, value, {}, [scale, op.input_zero_point])


def even(view: LayerView) -> Lowering:
    """Return the formula of `HalfEven`.

    Half of 2^shift is added, less one if the number before the point is even.
    """
    op = view.op

    def value(x: Sequence[Any], b: Any) -> Any:
        first, second = ((widen(x[i]) - op.zero_points[i]) * op.times[i] for i in range(2))
        total = {"add": first + second, "sub": first - second, "mul": first * second}[op.named]
        moved = total + (op.parity << op.shift)
        odd = T.bitwise_and(T.shift_right(moved, T.int32(op.shift)), T.int32(1))
        nearest = T.shift_right(moved + ((1 << op.shift - 1) - 1) + odd, T.int32(op.shift))
        return output(view, nearest - op.parity)

    return elements(view, value, ())
