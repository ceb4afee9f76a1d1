"""The module's form, and what unsupported models are told."""

from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.import_model.build import build_module
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_reader import read
from stages.ir.relax_module import operator_calls
from tests.support.malformed import altered, conv
from tests.support.relax_run import run_relax


def build(b: ModelBuilder):
    data = b.build()
    return build_module(data, read(data))


def branching() -> ModelBuilder:
    """x splits into two; one half is squared, the other joins it; two outputs."""
    b = ModelBuilder()
    x = b.input("x", (1, 2, 2, 4), "float32")
    first, second = b.split(x, 2, name="halves")
    squared = b.mul(first, first, name="squared")
    b.output(b.add(squared, second, name="sum"), squared)
    return b


def test_two_tensors_of_the_same_name_stay_apart() -> None:
    """TVM's own importer knows tensors by name and would add x to itself."""
    data = branching().build().replace(b"squared", b"halves\0")
    info = read(data)
    names = [tensor.name.rstrip("\0") for tensor in info.tensors]
    assert names.count("halves") == 2
    x = np.arange(16, dtype=np.float32).reshape(1, 2, 2, 4)
    total, _ = run_relax(build_module(data, info), [x])
    np.testing.assert_array_equal(total, x[..., :2] ** 2 + x[..., 2:])


@pytest.mark.parametrize(
    ("op", "hint"),
    [
        ("WHILE", "Unroll the loop"),
        ("IF", "Export each branch as a separate model"),
        ("CUSTOM:TFLite_Detection_PostProcess", "Export the detector without post-processing"),
    ],
)
def test_what_to_do_about_an_operator_is_stated(op: str, hint: str) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 8), "float32"), b.tensor("y", (1, 8), "float32")
    b.operator(op, [x], [y])
    b.output(y)
    with pytest.raises(StageError) as caught:
        build(b)
    assert caught.value.hint.startswith(hint)


def test_all_operators_that_cannot_be_imported_are_named_at_once() -> None:
    b = ModelBuilder()
    x, shape = b.input("x", (1, 8), "float32"), b.input("wanted", (2,), "int32")
    for name in ("first", "second"):
        y = b.tensor(name, (1, 8), "float32")
        b.operator("MATRIX_DIAG", [x], [y])
        x = b.relu(y)
    wrong = b.tensor("wrong", (1, 9), "float32")
    b.operator("TANH", [x], [wrong])
    shaped = b.tensor("shaped", (2, 4), "float32")
    b.operator("RESHAPE", [x, shape], [shaped], "ReshapeOptions")
    b.output(wrong, shaped)
    with pytest.raises(StageError) as caught:
        build(b)
    lines = str(caught.value).splitlines()
    assert lines[:2] == [
        "4 operators cannot be computed:",
        "  2 x MATRIX_DIAG (operators 0 'first', 2 'second'): not supported",
    ]
    assert lines[2].startswith("  1 x TANH (operator 4 'wrong'): gives float32[1, 8], but the file declares")
    assert lines[3].startswith("  1 x RESHAPE (operator 5 'shaped'): takes the shape from 'wanted', a computed tensor")
    assert lines[4] == "`doit operators` lists the supported operators (docs/reference/operators.md)."


def test_model_whose_outputs_are_all_constants_is_refused() -> None:
    b = ModelBuilder()
    b.relu(b.input("x", (1, 8), "float32"))
    b.output(b.constant("fixed", np.ones(3, np.float32)))
    with pytest.raises(StageError, match="all outputs of the model are constants, so nothing remains to run"):
        build(b)


def test_names_that_are_no_text_are_no_obstacle() -> None:
    """TVM's converter decodes some names as UTF-8."""

    def rename(model: Any, graph: Any) -> None:
        for number, tensor in enumerate(graph.tensors):
            tensor.name = b"\xff\x1b" + bytes([number])

    data = altered(conv("float32"), rename)
    (call,) = operator_calls(build_module(data, read(data)))
    assert call.op == "CONV_2D"
