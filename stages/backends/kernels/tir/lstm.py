"""TIR of recurrent layers: a call of the C function per step."""

from collections.abc import Callable
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Operand
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.ir.graph import LayerView


def lstm(view: LayerView, function: str, parameters: tuple[int, ...], chunk: int, scratch_bytes: int) -> Lowering:
    """Return LSTM of int8 data and int16 cells.

    `parameters` is the shape of the C structure. Weights are in chunks (stages.backends.kernels.lstm). The C function
    gets `scratch_bytes` of scratch.
    """
    op = view.op
    words = -(-scratch_bytes // 4)
    constants = (
        Operand("input", (op.units, -(-op.depth // chunk), 4, chunk), "int8"),
        Operand("recurrent", (op.units, -(-op.units // chunk), 4, chunk), "int8"),
        Operand("bias", (op.units, 2, 4), "int32"),
        Operand("scales", (4, 4), "int32"),
        Operand("lstm", parameters, "int32"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.scales, b.hidden, b.cell, b.y, b.w, b.lstm]

    return of_steps(view, function, constants, ("int8", "int16", "int32"), arguments, words)


def of_steps(
    view: LayerView,
    function: str,
    constants: tuple[Operand, ...],
    types: tuple[str, str, str],
    arguments: Callable[[Any], list[Any]],
    words: int = 0,
) -> Lowering:
    """Return a call per step and sequence of a recurrent layer, with or without cells.

    `types` are the types of data, cells and scratch, of which the C function gets `words` elements as `w`.
    """
    op, x_shape, y_shape = view.op, view.inputs[0].shape, view.outputs[0].shape
    batch, steps = (x_shape[1], x_shape[0]) if op.time_major else x_shape[:2]
    states = dict(zip(("hidden", "cell"), types[: len(view.states)], strict=False))
    operands = (
        Operand("x", (op.depth,), types[0]),
        *constants,
        *(Operand(name, (op.units,), dtype, "rw") for name, dtype in states.items()),
        Operand("y", (op.units,), types[0], "rw"),
        *((Operand("w", (words,), types[2], "rw"),) if words else ()),
    )
    block = Block("step", operands, None, function, arguments)
    with StatefulFunction("lstm") as f:
        x = f.input(0, x_shape, types[0])
        buffers = {operand.name: f.constant(operand.name, operand.shape, operand.dtype) for operand in constants}
        kept = {name: f.state(at, (batch, op.units), dtype) for at, (name, dtype) in enumerate(states.items())}
        y = f.output(0, y_shape, types[0])
        if words:
            buffers["w"] = f.scratch("w", (words,), types[2])
        with f.loop(("n", batch), ("t", steps)) as (n, t):
            at = (t, n, 0) if op.time_major else (n, t, 0)
            rows = {name: (state, n, 0) for name, state in kept.items()}
            f.place(block, x=(x, *at), **rows, y=(y, *at), **buffers)
    return f.lowering()
