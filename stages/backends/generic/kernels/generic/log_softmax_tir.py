"""TIR of LOG_SOFTMAX, without a micro-kernel since it adds values from tables."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, divide_by_pot, high_mul, int64, maximum, widen
from stages.backends.kernels.tir.strides import logical_strides, offset, walk
from stages.ir.arithmetic.logarithm import (
    ALPHA_D,
    ALPHA_F,
    ALPHA_I,
    ALPHA_N,
    FOURTH_ROOT_OF_HALF,
    LN_2,
    POWER_BITS,
    QUARTER,
    ROOT_OF_HALF,
    SUM_BITS,
)
from stages.ir.graph import LayerView

_CELLS = ("top", "total", "zeros", "room", "r", "power", "q", "square", "half", "scale", "log")


def log_softmax(view: LayerView) -> Lowering:
    """Return the loops around the block of a row. A row's elements may be apart (NCHW)."""
    x, y = view.inputs[0], view.outputs[0]
    count, (x_step, y_step) = x.shape[-1], (logical_strides(tensor)[-1] for tensor in (x, y))
    lowest = -128 if x.dtype == "int8" else 0

    def meaning(b: Any) -> None:
        store(b.top, lowest, 0)
        with loop(("i", count)) as i:
            store(b.top, maximum(widen(b.x[i * x_step]), b.top[0]), 0)
        store(b.total, 0, 0)
        with loop(("i", count)) as i:
            store(b.total, b.total[0] + b.exp[b.top[0] - widen(b.x[i * x_step])], 0)
        _logarithm(b)
        with loop(("i", count)) as i:
            real = int64(b.difference[b.top[0] - widen(b.x[i * x_step])]) - int64(b.log[0])
            value = T.Cast("int32", divide_by_pot(real, 22)) + (lowest + 255)
            store(b.y, T.Cast(y.dtype, clamp(value, lowest, lowest + 255)), i * y_step)

    tables = {name: Operand(name, (256,), "int32") for name in ("exp", "difference")}
    source = Operand("x", ((count - 1) * x_step + 1,), x.dtype)
    target = Operand("y", ((count - 1) * y_step + 1,), y.dtype, "w")
    row = Block("row", (source, *tables.values(), target, *map(accumulator, _CELLS)), meaning)
    axes = walk(x.shape[:-1], logical_strides(y)[:-1], logical_strides(x)[:-1])
    with Function("log_softmax") as f:
        source_buffer = f.input(0, (x.elements,), x.dtype)
        others = {name: f.constant(name, operand.shape, operand.dtype) for name, operand in tables.items()}
        result = f.output(0, (y.elements,), y.dtype)
        others |= {name: f.scratch(name, (1,), "int32") for name in _CELLS}
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(axes))) as at:
            f.place(row, x=(source_buffer, offset(at, axes, 1)), y=(result, offset(at, axes, 0)), **others)
    return f.lowering()


def _logarithm(b: Any) -> None:
    """Compute log = ln(total), as in `stages.ir.arithmetic.logarithm`.

    Sums fit int64, stored values int32.
    """
    total = int64(b.total[0])
    _leading_zeros(b.zeros, total)
    _leading_zeros(b.room, high_mul(b.total[0], ROOT_OF_HALF))
    store(b.room, b.room[0] - 1, 0)
    first = high_mul(_saturated(total * _power_of_two(b.zeros[0] - 1)), ROOT_OF_HALF) * T.int64(2)
    second = total * _power_of_two(b.room[0])
    store(b.r, T.min(_saturated(first), _saturated(second)), 0)
    unit = 1 << 31 - POWER_BITS
    store(b.power, T.max((SUM_BITS - b.zeros[0]) * unit + QUARTER, (SUM_BITS - b.room[0]) * unit - QUARTER), 0)
    store(b.q, T.Cast("int32", (int64(b.r[0]) - T.int64(FOURTH_ROOT_OF_HALF)) * T.int64(2)), 0)
    store(b.square, T.Cast("int32", high_mul(b.q[0], b.q[0])), 0)
    middle = T.shift_right(int64(b.r[0]) + T.int64(FOURTH_ROOT_OF_HALF + 1), T.int64(1))
    inner = T.int64(ALPHA_I) + int64(b.q[0]) + high_mul(b.square[0], ALPHA_D)
    below = high_mul(T.Cast("int32", middle), T.Cast("int32", inner)) + high_mul(b.q[0], ALPHA_F)
    store(b.half, T.Cast("int32", T.shift_right(below + T.int64(1 << 31), T.int64(1))), 0)
    store(b.scale, T.Cast("int32", high_mul(b.half[0], -1010580540) + T.int64(1515870810)), 0)
    with loop(("step", 3)):
        error = T.int64(1 << 29) - high_mul(b.half[0], b.scale[0])
        store(b.scale, b.scale[0] + _saturated(high_mul(b.scale[0], T.Cast("int32", error)) * T.int64(4)), 0)
    store(b.scale, _saturated(int64(b.scale[0]) * T.int64(2)), 0)
    product = T.Cast("int32", high_mul(b.q[0], b.square[0]))
    above = high_mul(b.q[0], b.r[0]) + high_mul(product, ALPHA_N)
    quotient = high_mul(T.Cast("int32", divide_by_pot(above, POWER_BITS)), b.scale[0])
    store(b.log, _saturated((high_mul(b.power[0], LN_2) + quotient) * T.int64(2)), 0)


def _leading_zeros(count: Any, value: Any) -> None:
    """Count the leading zeros of an int64 expression in [0, 2^31) as 32 bits, into count[0]."""
    store(count, 0, 0)
    with loop(("bit", 32)) as bit:
        store(count, count[0] + T.Cast("int32", value < T.shift_left(T.int64(1), int64(bit))), 0)


def _power_of_two(exponent: Any) -> Any:
    return T.shift_left(T.int64(1), int64(exponent))


def _saturated(x: Any) -> Any:
    """Return an int64 expression, saturated to int32."""
    return T.Cast("int32", T.min(T.max(x, T.int64(-(1 << 31))), T.int64((1 << 31) - 1)))
