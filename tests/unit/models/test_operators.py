"""One-operator models: every operator in every type runs, uses its output's range, and refuses nonsense clearly."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stages.base import StageError
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.ir.models.spec import options as options_of
from stages.ir.operators.table import operator_of
from stages.ir.reference import random_inputs
from stages.ir.reference.partitions import reference_of
from tests.support.operator_specs import spec

# Functions whose fixed output range random inputs do reach, and operators that pass their input's extremes through.
EXTREMES = {"softmax", "logistic", "tanh", "relu6", "max_pool2d"}
BUILTIN = {
    "avg_pool2d": "AVERAGE_POOL_2D",
    "max_pool2d": "MAX_POOL_2D",
    "conv2d": "CONV_2D",
    "depthwise_conv2d": "DEPTHWISE_CONV_2D",
    "lstm": "UNIDIRECTIONAL_SEQUENCE_LSTM",
}
CASES = [
    (op, dtype)
    for op in options_of()
    for dtype in ("int8", "uint8", "float32")
    if (declared := operator_of(op)) and dtype in declared.tensors.types and not declared.litert.tflm
]
CASES.remove(("dequantize", "float32"))


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_every_operator_runs_and_neither_saturates_nor_dies(op: str, dtype: str) -> None:
    oracle = reference_of(build(spec(op, dtype=dtype)))
    last = oracle.info.operators[-1].op
    assert last == BUILTIN.get(op, op.upper())
    (output, *_) = oracle.run(random_inputs(oracle.info, 1))
    if output.dtype == bool or op in ("arg_max", "arg_min"):
        assert len(np.unique(output)) > 1 or (op.endswith("equal") and dtype == "float32")  # hardly two are equal
        return
    if output.dtype == np.float32:
        assert output.std() > 0.01
        return
    if op == "cast":
        assert len(np.unique(output)) > 100 or dtype == "float32"  # all of these are below 1
        return
    limits = np.iinfo(output.dtype)
    assert np.mean(output == limits.max) < (0.4 if op in EXTREMES else 0.02)
    assert np.mean(output == limits.min) < 0.6
    assert np.ptp(output.astype(int)) > 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"op": "conv3d"}, r"unknown operator 'conv3d'; did you mean 'conv2d'\?"),
        ({"op": "zzz"}, "unknown operator 'zzz'\nKnown: abs, add"),
        ({"op": "div"}, "div cannot be a model by itself\nKnown: abs, add"),
        ({"op": "conv2d"}, "conv2d needs out_channels"),
        ({"op": "softmax", "kernel": [3, 3]}, "softmax has no option 'kernel'; it has beta"),
        ({"op": "conv2d", "out_channels": 6, "groups": 4}, "groups 4 must divide"),
        ({"op": "relu", "dtype": "float32", "output": {"scale": 1.0}}, "float32 tensors have no quantization"),
        ({"op": "conv2d", "out_channels": 4, "shape": [8, 8]}, "height, width, channels"),
        ({"op": "relu", "shape": [0, 4]}, "greater than or equal to 1"),
        ({"op": "dequantize", "dtype": "float32"}, "reads int8, uint8 or int16"),
    ],
)
def test_wrong_specs_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OpModel(**{"shape": [8, 8, 16]} | options)


def test_contradictions_between_shape_and_options_are_stage_errors() -> None:
    for op, options in (
        ("conv2d", {"kernel": [13, 13], "padding": "valid"}),
        ("reshape", {"new_shape": [7, 7]}),
        ("split", {"axis": 3, "parts": 5}),
        ("mean", {"axes": [4]}),
        ("slice", {"begin": [0], "size": [1]}),
        ("resize_nearest_neighbor", {"size": [4]}),
    ):
        with pytest.raises(StageError, match=f"model op '{op}': "):
            build(spec(op, **options))
