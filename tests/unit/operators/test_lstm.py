"""Supported LSTM layers of files, and errors for others."""

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.wide_lstm import WideLstm
from tests.support.integer import integer_graph

WEIGHTS, RECURRENT, BIAS = range(1, 5), range(5, 9), range(12, 16)


def lstm(
    changed: dict[int, str | None] | None = None, between: int = 5, dtype: str = "int8", **fields: object
) -> bytes:
    """An LSTM of 2 steps, 3 inputs and 4 cells, with some inputs replaced."""
    b = ModelBuilder()
    x = b.input("x", (1, 2, 3), dtype, *((0.05, 0) if dtype == "int8" else ()))
    parts: dict[str, Tensor | None] = {
        "weights": b.constant("weights", np.ones((4, 3), np.int8), 0.01),
        "recurrent": b.constant("recurrent", np.ones((4, 4), np.int8), 0.01),
        "bias": b.constant("bias", np.ones(4, np.int32), 5e-4),
        "hidden": b.variable("hidden", (1, 4), "int8", 0.01, 3),
        "cell": b.variable("cell", (1, 4), "int16", 2.0**-11),
        "wide": b.constant("wide", np.ones((4, 5), np.int8), 0.01),
        "channels": b.constant("channels", np.ones((4, 3), np.int8), [0.01] * 4),
        "off": b.constant("off", np.ones((4, 3), np.int8), 0.01, 2),
        "float": b.constant("float", np.ones((4, 3), np.float32)),
        "coefficients": b.constant("coefficients", np.ones(4, np.int16), 0.01),
        "odd": b.variable("odd", (1, 4), "int16", 0.0005),
        "coarse": b.variable("coarse", (1, 4), "int16", 2.0**-8),
        "short": b.variable("short", (1, 3), "int16", 2.0**-11),
        "real": b.variable("real", (1, 4), "float32"),
    }
    usual: dict[int, str | None] = {18: "hidden", 19: "cell"}
    for positions, name in ((WEIGHTS, "weights"), (RECURRENT, "recurrent"), (BIAS, "bias")):
        usual |= dict.fromkeys(positions, name)
    usual |= changed or {}
    inputs = [x, *(parts.get(usual.get(at) or "") for at in range(1, 24))]
    y = b.tensor("y", (1, 2, 4), dtype, *((0.01, 3) if dtype == "int8" else ()))
    inner = [b.tensor(f"between_{n}", (1,), "int8", 0.01, 3) for n in range(between)]
    options = {"fusedActivationFunction": 4, **fields}
    table = "UnidirectionalSequenceLSTMOptions"
    b.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], table, options, intermediates=inner)
    b.output(y)
    return b.build()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"changed": {9: "coefficients"}}, "has peepholes, which Firmline does not support"),
        ({"changed": {16: "recurrent"}}, "has a projection, which Firmline does not support"),
        ({"changed": {20: "coefficients"}}, "has layer normalization, which Firmline does not support"),
        ({"changed": {1: None, 5: None, 12: None}}, "has no input gate (CIFG)"),
        ({"changed": {3: "wide"}}, "has 'wide' [4, 5]; it must be [4, 3]"),
        ({"changed": {2: "channels"}}, "has 4 scales in 'channels'"),
        ({"changed": {4: "off"}}, "has the zero point 2 in 'off'; it must be 0"),
        ({"changed": {4: "float"}}, "has weights of float32 in 'float'; with int8 data it must be int8"),
        (
            {"changed": {19: "odd"}},
            "has the scale 0.0005 for the cell state 'odd'; it must be a power of two, 2^-15 to 2^-9",
        ),
        ({"changed": {19: "coarse"}}, "has the scale 0.00390625 for the cell state 'coarse'"),
        ({"changed": {19: "short"}}, "has the state 'short' [1, 3]; it must hold [1, 4]"),
        ({"changed": {18: "real"}}, "keeps float32 in 'real'; with int8 data it must be int8"),
        ({"changed": {18: "bias"}}, "has the state 'bias', which is not a variable tensor"),
        ({"between": 0}, "has 0 intermediate tensors"),
        ({"fusedActivationFunction": 1}, "has an activation other than TANH"),
        ({"diagonalRecurrentTensors": True}, "has diagonal recurrent weights"),
        ({"dtype": "float32"}, "has weights of int8 in 'weights'; with float32 data it must be float32"),
    ],
)
def test_what_is_wrong_is_stated(changes: dict[str, object], message: str) -> None:
    with pytest.raises(StageError) as caught:
        integer_graph(lstm(**changes))  # type: ignore[arg-type]
    assert message in caught.value.message
    assert "operator 0 (UNIDIRECTIONAL_SEQUENCE_LSTM)" in caught.value.message


def wide(data: float = 1e-3, weights: float = 0.01, recurrent: float = 0.01, hidden: float = 2.0**-15) -> bytes:
    """An LSTM of int16 with scales."""
    b = ModelBuilder()
    x = b.input("x", (1, 2, 3), "int16", data, 0)
    codes = [np.ones((4, 4, size), np.int8) for size in (3, 4)]
    bias, scales = np.ones((4, 4), np.int64), (weights, recurrent)
    b.output(b.lstm(x, *codes, bias, scales=scales, out=(hidden, 0), cell_scale=2.0**-11))
    return b.build()


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ({"data": 40.0, "weights": 0.1}, "has the scales 40 of 'x' and 0.1 of 'lstm/input/weights'; their product"),
        ({"recurrent": 2.0**17}, "3.05176e-05 of 'lstm/hidden' and 131072 of 'lstm/input/recurrent'; their product"),
        ({"hidden": 2.0**-60}, "has the scale 8.67362e-19 in 'lstm/hidden'; it must be above 2^-60"),
    ],
)
def test_scales_whose_shifts_leave_their_range(scales: dict[str, float], message: str) -> None:
    with pytest.raises(StageError) as caught:
        integer_graph(wide(**scales))
    assert message in caught.value.message


def test_the_largest_scales_of_sixteen_bits() -> None:
    (layer,) = integer_graph(wide(data=40.0, weights=0.0999, recurrent=2.0**17 - 1, hidden=2.0**-15)).layers
    assert isinstance(layer.op, WideLstm)
    assert {shift for _, shift in (*layer.op.input_scales, *layer.op.recurrent_scales)} == {14}
