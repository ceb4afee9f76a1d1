"""The oracle computes what LiteRT's reference kernels are documented to, and bad models or inputs are messages."""

import numpy as np
import pytest

from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_reader import read
from stages.ir.reference import Reference, RunError, random_inputs
from stages.ir.reference.probe import check_loads, crashing_operator
from stages.ir.reference.refusal import refusal


def two_layers() -> bytes:
    b = ModelBuilder()
    x = b.input("x", (1, 2, 2, 2), "int8", 0.5, 0)
    weights = np.array([[[[1, 2]]], [[[-3, 4]]]], dtype=np.int8)
    y = b.conv2d(x, weights, np.array([10, 0], np.int32), weight_scale=[0.5, 0.5], out=(1.0, 5), name="conv")
    b.output(b.relu(y, out=(0.5, -128), name="relu"))
    return b.build()


def loaded(b: ModelBuilder) -> None:
    data = b.build()
    check_loads(data, read(data), "odd")


def test_what_litert_refuses_is_reported_with_the_operator_and_its_reason() -> None:
    """int8 MAXIMUM of two scales: LiteRT checks it when it prepares the operator."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4), "int8", 0.5), b.input("y", (1, 4), "int8", 0.25)
    r, z = b.relu(x), b.tensor("z", (1, 5), "int8", 0.5)
    b.operator("CONCATENATION", [r, y], [z], "ConcatenationOptions", {"axis": 9})
    b.output(z)
    with pytest.raises(RunError) as caught:
        loaded(b)
    first, second, _ = str(caught.value).splitlines()
    assert first.startswith("operator 1 (CONCATENATION) is refused by LiteRT: ")
    assert ".cc:" not in first and "Node number" not in first
    assert second == "  'relu', 'y' -> 'z'"
    with pytest.raises(RunError, match=r"operator 1 \(CONCATENATION\) is refused by LiteRT"):
        Reference(b.build())


def test_scales_that_litert_refuses_are_those_of_the_file() -> None:
    """LiteRT prints both scales as integers, other ones each time."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4), "int8", 0.5), b.input("y", (1, 4), "int8", 0.25, 3)
    z = b.tensor("z", (1, 8), "int8", 0.5)
    b.operator("CONCATENATION", [x, y], [z], "ConcatenationOptions", {"axis": 1}, version=2)
    b.output(z)
    with pytest.raises(RunError) as caught:
        loaded(b)
    tensors = "'x' (scale 0.5, zero point 0), 'y' (scale 0.25, zero point 3) -> 'z' (scale 0.5, zero point 0)"
    hint = "Quantize the model anew, or put a QUANTIZE before the operator."
    told = "operator 0 (CONCATENATION) takes one scale and zero point for all int8 tensors"
    assert str(caught.value).startswith(f"{told}\n  {tensors}\n{hint}")
    b = ModelBuilder()
    b.output(b.relu(b.input("x", (1, 4), "int8", 0.5)))
    said = "tensorflow/a.cc:1 input.scale == 0.1 (-44 != 7)Node number 0 (RELU) failed to prepare."
    told = "operator 0 (RELU) does not take these scales (LiteRT: input.scale == 0.1)"
    assert str(refusal(read(b.build()), "m", said)).splitlines()[0] == told


def test_a_version_that_litert_does_not_know_is_reported() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4), "float32"), b.tensor("y", (1, 4), "float32")
    b.operator("TANH", [x], [y], version=99)
    b.output(y)
    with pytest.raises(RunError) as caught:
        loaded(b)
    told = "operator 0 (TANH) is version 99 of TANH, which LiteRT does not know\n  'x' -> 'y'\n"
    assert str(caught.value).startswith(told)


def test_a_file_that_only_litert_finds_corrupt_is_called_so() -> None:
    """A text that ends beyond the file, in a file that changed since it was read."""
    data = two_layers()
    at = data.index(b"Firmline") - 4
    damaged = data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :]
    with pytest.raises(RunError, match="odd is a corrupt TFLite file: LiteRT's check of it fails"):
        check_loads(damaged, read(data), "odd")


def test_a_file_that_kills_litert_is_a_message_with_the_operator() -> None:
    # Structure and types are sound, but the kernel aborts while it builds its table of exponentials.
    b = ModelBuilder()
    x = b.input("x", (1, 4), "int8", 0.5)
    y = b.softmax(b.relu(b.relu(b.relu(x))), beta=-1.0)
    b.output(b.relu(y, name="last"))
    with pytest.raises(RunError) as caught:
        loaded(b)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("operator 3 (SOFTMAX) ends LiteRT with SIG") and lines[0].endswith("while it is loaded")
    assert lines[1] == "  'relu_2' -> 'softmax'"


def test_the_operator_that_ends_litert_on_certain_inputs_is_found() -> None:
    """600 equal values: their exponentials add up to what the reference SOFTMAX cannot invert."""
    b = ModelBuilder()
    x = b.input("x", (1, 600), "int8", 0.1, 0)
    b.output(b.relu(b.softmax(b.relu(x))))
    data = b.build()
    info = read(data)
    found = crashing_operator(data, info, [np.zeros((1, 600), np.int8)])
    assert found is not None and (found.index, found.op) == (1, "SOFTMAX")
    assert crashing_operator(data, info, random_inputs(info)) is None
    assert crashing_operator(data, info) is None
