"""Cases of recurrent layers: from any state on, some steps."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from stages.ir.arithmetic.sigmoid16 import sigmoid_table
from stages.ir.graph import LayerView
from stages.ir.operators.lstm import FloatLstm, Lstm
from stages.ir.operators.lstm_layers import LstmLayer
from stages.ir.operators.recurrent import FloatGru, FloatRnn
from stages.ir.operators.wide_lstm import WideLstm
from tests.conformance.case import Case, case, drawn_inputs
from tests.conformance.draw import Draw, bounds, image, view, with_constants

OPS = ("lstm", "float_lstm", "float_gru", "float_rnn")
_USUAL = {"batch": 1, "steps": 2, "depth": 5, "units": 3}


def lstm(draw: Draw, batch: int, steps: int, depth: int, units: int, **fields: Any) -> LayerView:
    """On int8, with gates over all of their range."""
    draw = Draw(draw.seed)
    op = Lstm(
        depth=depth,
        units=units,
        time_major=draw.choose(False, True),
        input_zero_point=draw.zero_point(),
        state_zero_point=draw.zero_point(),
        output_zero_point=draw.zero_point(),
        input_scales=tuple(draw.multiplier(-3, 2) for _ in range(4)),
        recurrent_scales=tuple(draw.multiplier(-3, 2) for _ in range(4)),
        scale=draw.multiplier(-24, -21),
        cell_bits=draw.integer(0, 6),
        clip=draw.choose(0, 0, 1, 2000, 32767),
    ).model_copy(update=fields)
    constants = {
        "input_weights": draw.array((4, units, depth), "int8"),
        "recurrent_weights": draw.array((4, units, units), "int8"),
        "bias": draw.rng.integers(-30000, 30000, (4, units)).astype(np.int32),
    }
    return _view(op, batch, steps, constants, ("int8", "int16"))


def wide_lstm(draw: Draw, batch: int, steps: int, depth: int, units: int) -> LayerView:
    """On int16, with cells of every scale."""
    draw = Draw(draw.seed)
    up = draw.integer(-3, 3)
    op = WideLstm(
        depth=depth,
        units=units,
        time_major=draw.choose(False, True),
        input_scales=tuple(draw.multiplier(-11, -6) for _ in range(4)),
        recurrent_scales=tuple(draw.multiplier(-11, -6) for _ in range(4)),
        scale=draw.multiplier(-16, -13),
        entering=(1 << 30, draw.integer(-20, -14)),
        cell_scaling=(3 << up, 0) if up > 0 else (3, -up),
        clip=draw.choose(0, 0, 1, 2000, 32767),
    )
    constants = {
        "input_weights": draw.array((4, units, depth), "int8"),
        "recurrent_weights": draw.array((4, units, units), "int8"),
        "bias": draw.rng.integers(-(1 << 23), 1 << 23, (4, units)),
        "table": sigmoid_table(),
    }
    return _view(op, batch, steps, constants, ("int16", "int16"))


def float_lstm(draw: Draw, batch: int, steps: int, depth: int, units: int) -> LayerView:
    draw = Draw(draw.seed)
    op = FloatLstm(depth=depth, units=units, time_major=draw.choose(False, True), clip=draw.choose(0.0, 0.0, 1.0))
    return _floats(draw, op, batch, steps, (4,), "bias")


def float_gru(draw: Draw, batch: int, steps: int, depth: int, units: int) -> LayerView:
    draw = Draw(draw.seed)
    op = FloatGru(depth=depth, units=units, time_major=draw.choose(False, True), reset_after=draw.choose(False, True))
    return _floats(draw, op, batch, steps, (3,), "input_bias", "recurrent_bias")


def float_rnn(draw: Draw, batch: int, steps: int, depth: int, units: int) -> LayerView:
    draw = Draw(draw.seed)
    activation = draw.choose("tanh", "relu", "none")
    op = FloatRnn(depth=depth, units=units, time_major=draw.choose(False, True), activation=activation)
    return _floats(draw, op, batch, steps, (), "bias")


def _floats(draw: Draw, op: LstmLayer, batch: int, steps: int, gates: tuple[int, ...], *biases: str) -> LayerView:
    shapes = {"input_weights": (op.units, op.depth), "recurrent_weights": (op.units, op.units)}
    shapes |= dict.fromkeys(biases, (op.units,))
    constants = {}
    for name, shape in shapes.items():
        spread = shape[-1] if op.op == "float_rnn" else op.depth
        constants[name] = (draw.rng.normal(0, 1, (*gates, *shape)) / spread).astype(np.float32)
    return _view(op, batch, steps, constants, ("float32",) * (2 if op.op == "float_lstm" else 1))


def _view(op: LstmLayer, batch: int, steps: int, constants: dict[str, np.ndarray], types: tuple[str, ...]) -> LayerView:
    lead = (steps, batch) if op.time_major else (batch, steps)
    state = tuple(image(name, (batch, op.units), dtype) for name, dtype in zip(("hidden", "cell"), types, strict=False))
    x, y = (image(name, (*lead, size), types[0]) for name, size in (("x", op.depth), ("y", op.units)))
    return view(op, [x], y, constants, state)


def drawn(draw: Draw) -> LayerView:
    return lstm(draw, draw.choose(1, 1, 3), draw.integer(1, 5), draw.integer(1, 40), draw.integer(1, 9))


def mandatory() -> Iterator[Case]:
    for part in (_tails, _functions, _scales, _extremes):
        yield from part()


def _tails() -> Iterator[Case]:
    """Each size of each axis."""
    for axis, most in (("batch", 3), ("steps", 4), ("depth", 9), ("units", 6)):
        for size in range(1, most + 1):
            for maker in (lstm, float_lstm, float_gru, float_rnn):
                draw = Draw(size)
                layer = maker(draw, **_USUAL | {axis: size})
                given = drawn_inputs(draw, layer)
                if maker is not lstm:  # of sums beyond float32 there are functions of no number
                    given = ((draw.rng.normal(0, 2, layer.inputs[0].shape).astype(np.float32),),)
                within = 0.0 if maker is lstm else 2e-6
                yield Case(f"{layer.op.op} {axis} {size}", ("tails", "extremes"), layer, given, within)


def _functions() -> Iterator[Case]:
    """Gates of any values of int16, from the biases alone; cells of every scale."""
    unit = ((1 << 30), 1)
    few = np.array([-(1 << 15), 1 - (1 << 15), -1, 0, 1, (1 << 15) - 1])
    for bits in range(7):
        draw = Draw(bits)
        scales = (unit,) * 4
        layer = lstm(draw, 1, 2, 1, 48, cell_bits=bits, clip=0, input_scales=scales, recurrent_scales=scales)
        values = draw.array((4, 48), "int16")
        values[:, : few.size] = draw.rng.choice(few, (4, few.size))
        still = {name: np.zeros_like(layer.constant(name)) for name in ("input_weights", "recurrent_weights")}
        layer = with_constants(layer, **still, bias=values.astype(np.int32))
        yield case(f"lstm functions {bits}", draw, layer, "functions")


def _scales() -> Iterator[Case]:
    """Sums on the halves of each rounding and large ones, scaled by every shift, and by several beside each other."""
    small, large = np.arange(-80, 80), (1 << 30) - 5000
    for number, shifts in enumerate(
        (*((shift,) * 8 for shift in range(-31, 2)), (-3, 0, -1, -31, 0, -2, -7, 0), range(-5, 3))
    ):
        draw = Draw(number)
        scales = [(draw.choose(1 << 30, (1 << 31) - 1, (1 << 30) + 7), shift) for shift in shifts]
        layer = lstm(draw, 1, 2, 3, 48, input_scales=tuple(scales[:4]), recurrent_scales=tuple(scales[4:]))
        near = draw.rng.choice(small, (4, 48)) * (1 << draw.integer(0, max(-max(shifts), 0)))
        far = draw.rng.integers(-large, large, (4, 48)) >> max(*shifts, 0)
        bias = np.where(draw.rng.integers(0, 4, (4, 48)) == 0, far, near).clip(-large, large).astype(np.int32)
        layer = with_constants(layer, bias=bias)
        if number % 2:
            still = {name: np.zeros_like(layer.constant(name)) for name in ("input_weights", "recurrent_weights")}
            layer = with_constants(layer, **still)
        yield case(f"lstm scales {number}", draw, layer, "scales")


def _extremes() -> Iterator[Case]:
    """Sums as large as they get, gates that saturate, zero points at both ends."""
    low, high = bounds("int8")
    for number in range(8):
        draw = Draw(number)
        points = {"input_zero_point": (low, high)[number % 2], "state_zero_point": (low, high)[number // 2 % 2]}
        layer = lstm(draw, 2, 2, 16, 5, output_zero_point=(low, high)[number // 4], **points)
        parts = ("input_weights", "recurrent_weights")
        ends = {name: np.array([low, high])[draw.rng.integers(0, 2, layer.constant(name).shape)] for name in parts}
        layer = with_constants(layer, **{name: array.astype(np.int8) for name, array in ends.items()})
        yield case(f"lstm extremes {number}", draw, layer, "extremes", "zero points")
