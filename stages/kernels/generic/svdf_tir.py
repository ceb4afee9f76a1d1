"""TIR of SVDF."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm.tirx.script.builder import ir as T

from stages.kernels.generic.parameters import FLOAT_SVDF, SVDF
from stages.kernels.structure import Structure
from stages.kernels.tir.block import Block, Operand, loop, store
from stages.kernels.tir.fixed_point import clamp, output, requantize, widen
from stages.kernels.tir.stateful import StatefulFunction

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering

Expr = Any  # a TIR expression or a Python int


def svdf(view: LayerView) -> Lowering:
    """int8 data, weights of time and state in int16."""
    op = view.op

    def newest(total: Expr) -> Expr:
        scaled = requantize(total, op.feature_multiplier, op.feature_shift, op.rounding)
        return T.Cast("int16", clamp(scaled, -(1 << 15), (1 << 15) - 1))

    def result(total: Expr) -> Expr:
        return output(view, requantize(total, op.multiplier, op.shift, op.rounding))

    return _svdf(view, SVDF, "int32", ("int8", "int8", "int16", "int16"), newest, result)


def float_svdf(view: LayerView) -> Lowering:
    """All in float32; the fused activation's bounds are infinite where it has none."""
    op = view.op
    low, high = (T.float32(-np.inf if op.low is None else op.low), T.float32(np.inf if op.high is None else op.high))

    def clamped(total: Expr) -> Expr:
        return T.max(T.min(total, high), low)

    return _svdf(view, FLOAT_SVDF, "float32", ("float32",) * 4, lambda total: total, clamped, (low, high))


def _svdf(
    view: LayerView,
    structure: Structure,
    sums: str,
    types: tuple[str, str, str, str],
    newest: Callable[[Expr], Expr],
    result: Callable[[Expr], Expr],
    bounds: tuple[Expr, ...] = (),
) -> Lowering:
    """`types` of data, features, time and state; `newest` and `result` of sums, which have the type `sums`."""
    op, (batch, units) = view.op, view.outputs[0].shape
    filters, last = units * op.rank, op.memory - 1
    zero_point = getattr(op, "input_zero_point", 0)

    def wide(value: Expr) -> Expr:
        return widen(value) if sums == "int32" else value

    def meaning(b: Any) -> None:
        with loop(("f", filters)) as f:
            store(b.acc, T.Cast(sums, 0), 0)
            with loop(("k", op.depth)) as k:
                store(b.acc, b.acc[0] + (wide(b.x[k]) - T.Cast(sums, zero_point)) * wide(b.feature[f, k]), 0)
            if last:
                with loop(("m", last)) as m:
                    store(b.state, b.state[f * op.memory + m + 1], f * op.memory + m)
            store(b.state, newest(b.acc[0]), f * op.memory + last)
        with loop(("u", units)) as u:
            store(b.acc, b.bias[u], 0)
            with loop(("r", op.rank)) as r:
                store(b.part, T.Cast(sums, 0), 0)
                with loop(("m", op.memory)) as m:
                    row = u * op.rank + r
                    store(b.part, b.part[0] + wide(b.state[row * op.memory + m]) * wide(b.time[row, m]), 0)
                store(b.acc, b.acc[0] + b.part[0], 0)
            store(b.y, result(b.acc[0]), u)

    operands = (
        Operand("x", (op.depth,), types[0]),
        Operand("feature", (filters, op.depth), types[1]),
        Operand("time", (filters, op.memory), types[2]),
        Operand("bias", (units,), sums),
        Operand("svdf", structure.shape, "int32"),
        Operand("state", (filters * op.memory,), types[3], "rw"),
        Operand("y", (units,), types[0], "w"),
        Operand("acc", (1,), sums, "rw"),
        Operand("part", (1,), sums, "rw"),
    )
    function = "fl_svdf_s8" if sums == "int32" else "fl_svdf_f32"
    arguments = lambda b: [b.x, b.feature, b.time, b.bias, b.state, b.y, *bounds, b.svdf]  # noqa: E731
    row = Block("row", operands, meaning, function, arguments)
    with StatefulFunction("svdf") as f:
        x = f.input(0, (batch, op.depth), types[0])
        constants = {
            "feature": f.constant("feature", (filters, op.depth), types[1]),
            "time": f.constant("time", (filters, op.memory), types[2]),
            "bias": f.constant("bias", (units,), sums),
            "svdf": f.constant("svdf", structure.shape, "int32"),
        }
        state = f.state(0, (batch, filters * op.memory), types[3])
        y = f.output(0, (batch, units), types[0])
        cells = {name: f.scratch(name, (1,), sums) for name in ("acc", "part")}
        with f.loop(("n", batch)) as (n,):
            f.place(row, x=(x, n, 0), state=(state, n, 0), y=(y, n, 0), **constants, **cells)
    return f.lowering()
