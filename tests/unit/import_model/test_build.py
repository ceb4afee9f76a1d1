"""The module's form, and what unsupported models are told."""

from __future__ import annotations

import numpy as np
import pytest

from stages.base import StageError
from stages.import_model.build import build_module
from stages.models.builder import ModelBuilder
from stages.models.tflite_reader import read
from stages.relax_module import attributes, load_module, operator_calls, save_module
from tests.support.relax_run import run_relax


def build(b: ModelBuilder):
    data = b.build()
    return build_module(data, read(data))


def branching() -> ModelBuilder:
    """x splits into two; one half is squared, the other joins it; two outputs."""
    b = ModelBuilder()
    x = b.input("x", (1, 2, 2, 4), "float32")
    left, right = b.split(x, 2, name="halves")
    squared = b.mul(left, left, name="squared")
    b.output(b.add(squared, right, name="sum"), squared)
    return b


def test_each_operator_is_a_function_in_the_order_of_the_file() -> None:
    module = build(branching())
    calls = list(operator_calls(module))
    assert [(call.index, call.op) for call in calls] == [(0, "SPLIT"), (1, "MUL"), (2, "ADD")]
    split, multiply, add = calls
    assert (split.name, multiply.name, add.name) == ("halves", "squared", "sum")
    # A tensor read twice is one parameter.
    assert multiply.inputs == split.outputs[:1]
    assert len(multiply.function.params) == 1
    assert add.inputs == (multiply.outputs[0], split.outputs[1])
    assert attributes(module["main"])["outputs"] == (*add.outputs, *multiply.outputs)
    # Private: TVM may drop, inline or rename nothing that has a global symbol.
    assert all(call.function.attrs.get("global_symbol") is None for call in calls)


def test_branches_and_outputs_compute_the_right_thing() -> None:
    x = np.arange(16, dtype=np.float32).reshape(1, 2, 2, 4)
    total, squared = run_relax(build(branching()), [x])
    np.testing.assert_array_equal(squared, x[..., :2] ** 2)
    np.testing.assert_array_equal(total, x[..., :2] ** 2 + x[..., 2:])


def test_two_tensors_of_the_same_name_stay_apart() -> None:
    """TVM's own importer knows tensors by name and would add x to itself."""
    data = branching().build().replace(b"squared", b"halves\0")
    info = read(data)
    names = [tensor.name.rstrip("\0") for tensor in info.tensors]
    assert names.count("halves") == 2
    x = np.arange(16, dtype=np.float32).reshape(1, 2, 2, 4)
    total, _ = run_relax(build_module(data, info), [x])
    np.testing.assert_array_equal(total, x[..., :2] ** 2 + x[..., 2:])


def test_saved_and_loaded_module_is_the_same(tmp_path) -> None:
    from tvm import ir

    module = build(branching())
    save_module(module, tmp_path)
    loaded = load_module(tmp_path)
    ir.assert_structural_equal(loaded, module)
    first = (tmp_path / "module.json").read_bytes()
    save_module(loaded, tmp_path)
    assert (tmp_path / "module.json").read_bytes() == first


def test_unsupported_operator_is_named_with_its_tensors() -> None:
    b = ModelBuilder()
    x = b.input("signal", (1, 8), "float32")
    middle = b.relu(x)
    y = b.tensor("running sum", (1, 8), "float32")
    b.operator("CUMSUM", [middle, b.constant("axis", np.array(1, np.int32))], [y], "CumsumOptions")
    b.output(y)
    with pytest.raises(StageError) as caught:
        build(b)
    message = str(caught.value)
    assert message.startswith("operator 1 (CUMSUM) is not supported\n  'relu', 'axis' -> 'running sum'\n")
    assert "CONV_2D" in message


def test_float_only_operator_on_quantized_tensors_is_refused() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8), "int8", 0.1, 0)
    y = b.tensor("y", (1, 8), "int8", 0.1, 0)
    b.operator("COS", [x], [y], "CosOptions")
    b.output(y)
    with pytest.raises(StageError, match=r"operator 0 \(COS\) is supported for float32 only"):
        build(b)


@pytest.mark.parametrize(("scale", "lacks"), [(None, "no quantization"), (0.0, "a scale of 0")])
def test_bytes_without_a_quantization_are_refused(scale: float | None, lacks: str) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8), "int8", *(() if scale is None else (0.375, 0)))
    y = b.tensor("y", (1, 8), "int8", 0.1, 0)
    b.operator("TANH", [x], [y])
    b.output(y)
    told = rf"operator 0 \(TANH\) cannot be computed: tensor 0 'x' is int8 but has {lacks}\n  'x' -> 'y'"
    data = b.build().replace(np.float32(0.375).tobytes(), np.float32(0).tobytes())
    with pytest.raises(StageError, match=told):
        build_module(data, read(data))


def test_a_tensor_of_two_gigabytes_is_refused() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 1 << 20, 512), "float32")
    b.output(b.relu(x))
    with pytest.raises(StageError, match=r"does not fit any target: 'x' is float32\[1, 1048576, 512\], 2 GB or more"):
        build(b)


def test_computed_shape_is_refused() -> None:
    b = ModelBuilder()
    x, shape = b.input("x", (1, 8), "float32"), b.input("wanted", (2,), "int32")
    y = b.tensor("y", (2, 4), "float32")
    b.operator("RESHAPE", [x, shape], [y], "ReshapeOptions")
    b.output(y)
    with pytest.raises(StageError, match=r"operator 0 \(RESHAPE\) takes 'wanted', a shape or an axis"):
        build(b)


def test_dynamic_shape_is_refused() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 7777), "float32")
    b.output(b.relu(x))
    data = b.build().replace(np.array(7777, "<i4").tobytes(), np.array(-1, "<i4").tobytes())
    with pytest.raises(StageError, match=r"operator 0 \(RELU\) has the dynamic shape \[1, -1\] in 'x'"):
        build_module(data, read(data))


def test_declared_shape_that_contradicts_the_operator_is_refused() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8), "float32")
    y = b.tensor("y", (1, 9), "float32")
    b.operator("TANH", [x], [y])
    b.output(y)
    with pytest.raises(StageError, match=r"gives float32\[1, 8\], but the file declares float32\[1, 9\]"):
        build(b)


def test_negative_stride_is_refused() -> None:
    b = ModelBuilder()
    x = b.input("x", (8,), "float32")
    parts = [b.constant(name, np.array([value], np.int32)) for name, value in (("from", 7), ("to", 0), ("by", -1))]
    y = b.tensor("y", (7,), "float32")
    b.operator("STRIDED_SLICE", [x, *parts], [y], "StridedSliceOptions")
    b.output(y)
    with pytest.raises(StageError, match="stride -1 along axis 0"):
        build(b)


def test_what_tvm_refuses_is_an_error_and_no_traceback() -> None:
    """A convolution without its options: TVM's converter fails on an assertion."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 2), "float32")
    y = b.tensor("y", (1, 4, 4, 3), "float32")
    b.operator("CONV_2D", [x, b.constant("w", np.ones((3, 1, 1, 2), np.float32))], [y])
    b.output(y)
    with pytest.raises(StageError, match=r"operator 0 \(CONV_2D\) cannot be converted"):
        build(b)


def test_unsigned_weights_with_float_data_are_refused() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8), "float32")
    b.output(b.fully_connected(x, np.ones((2, 8), np.uint8), weight_scale=0.1))
    with pytest.raises(StageError, match="has float32 data and uint8 weights"):
        build(b)


def test_model_whose_output_is_a_constant_is_refused() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8), "float32")
    b.output(b.relu(x), b.constant("fixed", np.ones(3, np.float32)))
    with pytest.raises(StageError, match="output 'fixed' of the model is a constant"):
        build(b)
