"""Operators with int8 kernels are integers after calibration, whether or not ai-edge-quantizer knows them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.import_model.build import build_module
from stages.ir.model_info import TensorInfo
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_reader import read
from stages.ir.models.tflite_writer import BuildError
from stages.ir.operators.table import OPERATORS
from stages.ir.reference.integer import run_graph
from stages.ir.reference.interpreter import random_inputs
from stages.ir.reference.partitions import reference_of
from stages.ptq.extra_operators import REMAINING
from stages.ptq.observe import Range
from stages.ptq.precision import precisions
from stages.ptq.quantizer import Quantized, check_runs, quantize
from stages.quantize.options import QuantizeOptions
from tests.support.integer import integer_graph
from tests.support.optional import needs
from tests.tflm.case import Case, files, load, model
from tests.tflm.litert_types import _cases, _data_type, _retyped

pytestmark = needs("ai_edge_quantizer", "ptq")

# What has no real numbers to quantize, or state that wants ranges of its own.
APART = {
    *("CAST", "DEQUANTIZE", "EMBEDDING_LOOKUP", "FILL", "FLOOR_DIV", "FLOOR_MOD", "ONE_HOT", "QUANTIZE"),
    *("ASSIGN_VARIABLE", "READ_VARIABLE", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
}


def of_float(name: str) -> Case:
    """A case of the operator in float32 that LiteRT runs and import takes."""
    more = load(name.lower()) if name.lower() in files() else []
    usable = (
        candidate for candidate in (*more, *_cases(OPERATORS[name])) if candidate.data and not candidate.impossible
    )
    for case in (candidate for candidate in usable if _data_type(candidate) != "bool"):
        for version in (1, 2, 3):
            try:
                float_case = replace(_retyped(case, "float32", None), version=version)
                if name == "TRANSPOSE_CONV":  # the library takes no bias of 4 axes, which this case has
                    float_case = replace(float_case, inputs=float_case.inputs[:3])
                if name == "SQUEEZE":  # this one declares the shape of its input
                    float_case = replace(float_case, outputs=(replace(float_case.outputs[0], shape=(2, 2, 4)),))
                reference = reference_of(model([float_case]))
                build_module(model([float_case]), reference.info)
                reference.run([np.zeros(candidate.shape, candidate.dtype) for candidate in reference.inputs])
            except (BuildError, StageError, ValueError, IndexError, RuntimeError):
                continue
            return float_case
    raise AssertionError(f"no case of {name}")


def calibrated(data: bytes, **options: Any) -> tuple[Quantized, list[np.ndarray], dict[int, np.ndarray]]:
    """The quantized network, its calibration inputs and the values of the float network's tensors on them."""
    info, reference = read(data), reference_of(data)
    inputs = [
        np.abs(array) + np.float32(0.1) if array.dtype == np.float32 else array * 0 for array in random_inputs(info, 1)
    ]
    inputs = [array.astype(info.tensors[at].dtype) for array, at in zip(inputs, info.inputs, strict=True)]
    reference.run(inputs)
    values = {**dict(zip(info.inputs, inputs, strict=True)), **reference.computed()}
    ranges = {
        at: Range(float(array.min()), float(array.max())) for at, array in values.items() if array.dtype == np.float32
    }
    wanted, _ = precisions(
        info, QuantizeOptions.model_validate({"mode": "calibrate", "data": {"random": {}}, **options})
    )
    return quantize(data, info, ranges, wanted, per_channel=True), inputs, values


def floats(quantized: Quantized) -> Iterator[str]:
    for operator in quantized.info.operators:
        tensors = [quantized.info.tensors[index] for index in (*operator.inputs, *operator.outputs) if index >= 0]
        if any(tensor.dtype == "float32" for tensor in tensors):
            yield operator.op


def test_every_operator_with_an_int8_kernel_is_integer() -> None:
    """All of the table in one network, which LiteRT runs and whose integer graph gives the same."""
    names = [
        name
        for name, operator in OPERATORS.items()
        if name not in APART and operator.legalization.layers and {"int8", "float32"} <= {*operator.tensors.types}
    ]
    assert {*names} >= REMAINING
    data = model([of_float(name) for name in names])
    quantized, inputs, values = calibrated(data)
    assert list(floats(quantized)) == []
    check_runs(quantized)
    graph, reference = integer_graph(quantized.data), reference_of(quantized.data)
    integer_inputs = [
        _in(quantized.info.tensors[at], array) for at, array in zip(quantized.info.inputs, inputs, strict=True)
    ]
    expected = reference.run(integer_inputs)
    results = run_graph(graph, integer_inputs)
    for name, theirs in zip(graph.outputs, expected, strict=True):
        np.testing.assert_array_equal(results[name], theirs, name)
    for operator in read(data).operators:
        out = quantized.tensor(operator.outputs[0])
        assert out is not None
        if operator.op in REMAINING and values[operator.outputs[0]].dtype == np.float32:
            real = (reference.tensor(out.index).astype(float) - out.zero_point) * out.scale
            worst = np.abs(real - values[operator.outputs[0]]).max() / (255 * out.scale[0])
            assert worst < 0.03, (operator.op, worst)


def _in(tensor: TensorInfo, values: np.ndarray) -> np.ndarray:
    if tensor.dtype != "int8":
        return values
    return np.clip(np.rint(values / tensor.scale) + tensor.zero_point, -128, 127).astype(np.int8)


def chain() -> bytes:
    b, rng = ModelBuilder(), np.random.default_rng(2)
    y = b.conv2d(
        b.input("x", (1, 4, 4, 3), "float32"), rng.normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32), name="conv"
    )
    y = b.emit("LEAKY_RELU", [y], (1, 4, 4, 4), None, "leaky", "LeakyReluOptions", {"alpha": 0.1})
    axes = b.constant("axes", np.array([1, 2], np.int32))
    y = b.emit("REDUCE_MAX", [y, axes], (1, 4), None, "most", "ReducerOptions", {"keepDims": False})
    y = b.emit("ABS", [y], (1, 4), None, "abs")
    b.output(b.fully_connected(y, rng.normal(0, 0.3, (2, 4)).astype(np.float32), name="dense"))
    return b.build()


OPERATORS_OF_CHAIN = ["CONV_2D", "LEAKY_RELU", "REDUCE_MAX", "ABS", "FULLY_CONNECTED"]


@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_nothing_stands_between_neighbours(activations: str) -> None:
    """No conversion is left: operators that pick values have the scale of what they read."""
    quantized, *_ = calibrated(chain(), activations=activations)
    assert [operator.op for operator in quantized.info.operators] == OPERATORS_OF_CHAIN
    assert {quantized.info.tensors[operator.outputs[0]].dtype for operator in quantized.info.operators} == {activations}


def test_what_the_recipe_keeps_in_float_stays() -> None:
    quantized, *_ = calibrated(chain(), keep_float=[{"op": "leaky_relu"}])
    assert [*floats(quantized)] == ["DEQUANTIZE", "LEAKY_RELU", "QUANTIZE"]
    check_runs(quantized)
