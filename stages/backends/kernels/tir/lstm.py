"""TIR of LSTM on int8, and the loops that all LSTMs share: a block per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, requantize, widen
from stages.backends.kernels.tir.sigmoid16 import CELLS, rounded, sigmoid16, tanh16
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.ir.arithmetic.sigmoid16 import HIGH, LOW
from stages.ir.graph import LayerView

# Cells of the buffer of a meaning, behind those of the functions: four gates, and what leaves them.
GATES, SUM = CELLS, CELLS + 4


def lstm(view: LayerView, function: str, parameters: tuple[int, ...], chunk: int, scratch_bytes: int) -> Lowering:
    """Return LSTM of int8 data and int16 cells.

    `parameters` is the shape of the C structure. Weights are in chunks (stages.backends.kernels.lstm). The C function
    gets `scratch_bytes` of scratch.
    """
    op = view.op
    words = max(SUM + 1, -(-scratch_bytes // 4))
    low, high = (-op.clip, op.clip) if op.clip else (LOW, HIGH)

    def rows(b: Any) -> list[tuple[Any, Any, int]]:
        return [(b.x, b.input, op.depth), (b.hidden, b.recurrent, op.units)]

    def meaning(b: Any) -> None:
        w = b.w
        with loop(("u", op.units)) as u:
            with loop(("k", 4)) as k:
                for number, (row, weights, count) in enumerate(rows(b)):
                    store(w, b.bias[u, number, k], number)
                    chunked, rest = divmod(count, chunk)
                    for first, chunks, elements in ((0, chunked, chunk), (chunked, 1, rest)):
                        if chunks * elements:
                            with loop((f"c{number}_{first}", chunks), (f"e{number}_{first}", elements)) as (c, e):
                                value = widen(row[(first + c) * chunk + e]) * widen(weights[u, first + c, k, e])
                                store(w, w[number] + value, number)
                first = clamp(requantize(w[0], b.scales[0, k], b.scales[1, k], "double"), LOW, HIGH)
                second = requantize(w[1], b.scales[2, k], b.scales[3, k], "double")
                store(w, clamp(first + second, LOW, HIGH), k + GATES)
            for k, name in ((0, "si"), (1, "sf"), (3, "so")):
                sigmoid16(w, GATES + k, name)
            tanh16(w, GATES + 2, 3, "tg")
            store(w, rounded(widen(b.cell[u]) * w[GATES + 1], 15), SUM)
            store(w, w[SUM] + rounded(w[GATES] * w[GATES + 2], 15 + op.cell_bits), SUM)
            store(w, clamp(clamp(w[SUM], LOW, HIGH), low, high), SUM)
            store(b.cell, T.Cast("int16", w[SUM]), u)
            tanh16(w, SUM, op.cell_bits, "tc")
            product = requantize(w[SUM] * w[GATES + 3], op.scale[0], op.scale[1], "double")
            store(b.y, T.Cast("int8", clamp(product + op.output_zero_point, -128, 127)), u)
        with loop(("u", op.units)) as u:
            store(b.hidden, b.y[u], u)

    constants = (
        Operand("input", (op.units, -(-op.depth // chunk), 4, chunk), "int8"),
        Operand("recurrent", (op.units, -(-op.units // chunk), 4, chunk), "int8"),
        Operand("bias", (op.units, 2, 4), "int32"),
        Operand("scales", (4, 4), "int32"),
        Operand("lstm", parameters, "int32"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.scales, b.hidden, b.cell, b.y, b.w, b.lstm]

    return of_steps(view, function, constants, ("int8", "int16", "int32"), meaning, arguments, words)


def of_steps(
    view: LayerView,
    function: str,
    constants: tuple[Operand, ...],
    types: tuple[str, str, str],
    meaning: Callable[[Any], None],
    arguments: Callable[[Any], list[Any]],
    words: int = SUM + 1,
) -> Lowering:
    """Return a block per step and sequence of a recurrent layer, with or without cells.

    `types` are the types and sizes of data, cells and intermediate values.
    """
    op, x_shape, y_shape = view.op, view.inputs[0].shape, view.outputs[0].shape
    batch, steps = (x_shape[1], x_shape[0]) if op.time_major else x_shape[:2]
    states = dict(zip(("hidden", "cell"), types[: len(view.states)], strict=False))
    operands = (
        Operand("x", (op.depth,), types[0]),
        *constants,
        *(Operand(name, (op.units,), dtype, "rw") for name, dtype in states.items()),
        Operand("y", (op.units,), types[0], "rw"),
        Operand("w", (words,), types[2], "rw"),
    )
    block = Block("step", operands, meaning, function, arguments)
    with StatefulFunction("lstm") as f:
        x = f.input(0, x_shape, types[0])
        buffers = {operand.name: f.constant(operand.name, operand.shape, operand.dtype) for operand in constants}
        kept = {name: f.state(at, (batch, op.units), dtype) for at, (name, dtype) in enumerate(states.items())}
        y, w = f.output(0, y_shape, types[0]), f.scratch("w", (words,), types[2])
        with f.loop(("n", batch), ("t", steps)) as (n, t):
            at = (t, n, 0) if op.time_major else (n, t, 0)
            rows = {name: (state, n, 0) for name, state in kept.items()}
            f.place(block, x=(x, *at), **rows, y=(y, *at), w=w, **buffers)
    return f.lowering()
