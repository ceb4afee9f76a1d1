"""LSTM on int8: code that the kernels of all families share (include/lstm_image.h)."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Operand
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

_SUMS = 16 * 8 * 4  # bytes of LSTM_BLOCK cells
LSTM = Structure.of_header("fl_lstm", __file__, "include/lstm_image.h")


class Lstm8(Kernel):
    """LSTM, one step of a sequence at a time: all gates, then the functions of all cells.

    function  of its C
    chunk     elements of a row that are multiplied at a time
    wide      bytes of an element in the row's copy
    prices    instructions per product, and of the functions of a cell
    """

    ops: ClassVar[frozenset[str]] = frozenset({"lstm"})
    calls = True
    function: ClassVar[str]
    wide: ClassVar[int] = 1
    prices: ClassVar[tuple[float, float]]

    def chunk(self, target: Target) -> int:
        """Return the elements that the C function multiplies at once."""
        return 1

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return "" if view.inputs[0].dtype == "int8" else f"{view.inputs[0].dtype}; this kernel is for int8"

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        """Pack the constants. The biases include the zero points."""
        op, chunk = view.op, self.chunk(target)
        weights = {name: view.constant(f"{name}_weights") for name in ("input", "recurrent")}
        zero_points = (op.input_zero_point, op.state_zero_point)
        bias = np.stack(
            [
                -zero * array.sum(axis=2, dtype=np.int64)
                for zero, array in zip(zero_points, weights.values(), strict=True)
            ]
        )
        bias[0] += view.constant("bias")
        fields = {
            "units": op.units,
            "depth": op.depth,
            "cell_bits": op.cell_bits,
            "clip": op.clip or 1 << 15,
            "multiplier": op.scale[0],
            "shift": op.scale[1],
            "zero_point": op.output_zero_point,
        }
        scales = np.array([*zip(*op.input_scales, strict=True), *zip(*op.recurrent_scales, strict=True)], np.int32)
        return {
            **{name: in_chunks(array, chunk) for name, array in weights.items()},
            "bias": bias.transpose(2, 0, 1).astype(np.int32),
            "scales": scales,
            "lstm": LSTM.of(fields),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return lstm(view, self.function, LSTM.shape, self.chunk(target), self.scratch_bytes(view, target))

    @staticmethod
    def doubled(view: LayerView) -> int:
        """Return the bound of twice a sum after its left shift, over all inputs."""
        op, most = view.op, 0
        for name, scales in (("input", op.input_scales), ("recurrent", op.recurrent_scales)):
            weights = np.abs(view.constant(f"{name}_weights").astype(np.int64)).sum(axis=2)
            sums = 255 * weights + (np.abs(view.constant("bias").astype(np.int64)) if name == "input" else 0)
            most = max(
                most, *(int(row.max()) << max(shift, 0) + 1 for row, (_, shift) in zip(sums, scales, strict=True))
            )
        return most

    def scratch_bytes(self, view: LayerView, target: Target) -> int:
        """Return the bytes of a block's sums, the copies of both rows, and the gates."""
        chunk = self.chunk(target)
        rows = (-(-count // chunk) * chunk * self.wide for count in (view.op.depth, view.op.units))
        return _SUMS + sum(-(-row // 16) * 16 for row in rows) + 8 * view.op.units

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Add 2 instructions per copied element and 100 per step."""
        op, (product, functions) = view.op, self.prices
        steps, chunk = view.outputs[0].elements / op.units, self.chunk(target)
        depth, before = (-(-count // chunk) * chunk for count in (op.depth, op.units))
        unit_cost = 4 * product * (depth + before) + functions
        return float(steps * (op.units * unit_cost + 2 * (op.depth + op.units) + 100))


def in_chunks(weights: Array, chunk: int) -> Array:
    """Return [4, units, depth] as [units, chunks, 4, chunk], padded with zeros."""
    padded = np.pad(weights, ((0, 0), (0, 0), (0, -weights.shape[2] % chunk)))
    return np.ascontiguousarray(padded.reshape(*weights.shape[:2], -1, chunk).transpose(1, 2, 0, 3))


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
