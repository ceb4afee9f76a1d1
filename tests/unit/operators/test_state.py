"""Operators with state: supported forms, and errors for others."""

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_writer import Tensor
from tests.support.integer import integer_graph


def svdf(**changes: object) -> bytes:
    """An SVDF with some parts replaced."""
    b = ModelBuilder()
    x = b.input("x", (1, 4), "int8", 0.05, 0)
    parts: dict[str, Tensor | None] = {
        "feature": b.constant("feature", np.ones((6, 4), np.int8), 0.01),
        "time": b.constant("time", np.ones((6, 3), np.int16), 0.001),
        "bias": b.constant("bias", np.ones(3, np.int32), 1e-6),
        "state": b.variable("state", (1, 18), "int16", 0.001),
        "narrow": b.constant("narrow", np.ones((6, 3), np.int8), 0.001),
        "kept": b.tensor("kept", (1, 18), "int16", 0.001),
        "short": b.variable("short", (1, 17), "int16", 0.001),
        "off": b.variable("off", (1, 18), "int16", 0.001, 3),
    }
    chosen = [parts[str(changes.get(name, name))] for name in ("feature", "time", "bias", "state")]
    fields = {"rank": changes.get("rank", 2), "fusedActivationFunction": changes.get("activation", 1)}
    y = b.tensor("y", (1, 3), "int8", 0.1, 0)
    b.operator("SVDF", [x, *chosen], [y], "SVDFOptions", fields, version=3)
    b.output(y)
    return b.build()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"time": "narrow"},
            "has its state of int16 in 'state'; with int8 data and int8 weights of time it must be int8",
        ),
        ({"time": "state"}, "at an input that is not a state"),
        ({"state": "short"}, "has the state 'short' [1, 17]; it must be [1, 18]"),
        ({"state": "off"}, "has the zero point 3 in 'off'; for int16 it must be 0"),
        ({"rank": 4}, "has 6 features, which is not a multiple of its rank 4"),
        ({"rank": 0}, "has 6 features, which is not a multiple of its rank 0"),
        ({"rank": 3}, "has the bias 'bias' [3], which does not fit 2 units"),
        ({"activation": 0}, "has a fused activation other than RELU"),
    ],
)
def test_what_is_wrong_is_stated(changes: dict[str, object], message: str) -> None:
    with pytest.raises(StageError) as caught:
        integer_graph(svdf(**changes))
    assert message in caught.value.message
    assert "operator 0 (SVDF)" in caught.value.message


def test_state_that_is_no_variable() -> None:
    with pytest.raises(StageError, match=r"reads tensor .*'kept', which nothing writes"):
        integer_graph(svdf(state="kept"))


def test_a_variable_is_no_output_of_the_model() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4), "int8", 0.05, 0)
    y = b.svdf(x, np.ones((6, 4), np.int8), np.ones((6, 3), np.int16), scales=(0.01, 0.001, 0.001), out=(0.1, 0))
    kept = b.variable("mine", (1, 4), "int8", 0.05, 0)
    b.output(y, kept)
    with pytest.raises(StageError, match="output 'mine' of the model is a variable tensor"):
        integer_graph(b.build())
