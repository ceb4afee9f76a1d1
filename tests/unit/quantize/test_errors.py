"""Errors of models without an integer form: operator, index, tensors, remedy."""

import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.operators.declaration import INTEGERS
from stages.ir.operators.table import OPERATORS
from stages.quantize.patterns import pattern_of
from tests.support.integer import integer_graph


def message(builder: ModelBuilder, *outputs: object) -> str:
    builder.output(*outputs)  # type: ignore[arg-type]
    with pytest.raises(StageError) as error:
        integer_graph(builder.build())
    assert 1 <= len(str(error.value).splitlines()) <= 5
    return str(error.value)


def test_int8_concatenation_of_other_scales() -> None:
    builder = ModelBuilder()
    a, b = builder.input("a", (1, 4), "int8", 0.1, 0), builder.input("b", (1, 4), "int8", 0.2, 0)
    text = message(builder, builder.concatenation([a, b], out=(0.1, 0), name="joined"))
    assert text.startswith("operator 0 (CONCATENATION) 'joined' joins tensors of different scales")
    assert "'a' int8[1, 4], 'b' int8[1, 4] -> 'joined' int8[1, 8]" in text


def test_every_operator_that_is_imported_with_scales_has_an_integer_form() -> None:
    """Import refuses the others."""
    quantized = {
        name
        for name, operator in OPERATORS.items()
        if operator.quantization.quantized and {*INTEGERS} & {*operator.tensors.types}
    }
    assert {name for name in quantized if pattern_of(name) is None} == set()


def test_softmax_on_another_output_scale() -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "int8", 0.1, 0)
    y = builder.tensor("probabilities", (1, 4), "int8", 0.02, -128)
    builder.operator("SOFTMAX", [x], [y], "SoftmaxOptions", {"beta": 1.0}, version=2)
    text = message(builder, y)
    assert "has an output with scale 0.02 and zero point -128, not 1/256 and -128" in text


def test_hard_swish_with_a_scale_too_fine() -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "int8", 0.5, 0)
    text = message(builder, builder.hard_swish(x, out=(0.001, 0)))
    assert "the output's scale is below 1/128 of the input's" in text


def test_all_operators_without_an_integer_form_are_named_at_once() -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "int8", 0.5, 0)
    a = builder.hard_swish(x, out=(0.001, 0), name="first")
    b = builder.hard_swish(x, out=(0.002, 0), name="second")
    text = message(builder, builder.concatenation([a, b], out=(0.001, 0), name="joined"))
    lines = text.splitlines()
    assert lines[0] == "3 operators cannot be computed:"
    assert lines[1].startswith(
        "  2 x HARD_SWISH (operators 0 'first', 1 'second'): cannot be computed as the reference"
    )
    assert lines[2].startswith("  1 x CONCATENATION (operator 2 'joined'): joins tensors of different scales")


def test_scales_whose_product_is_beyond_float32() -> None:
    builder = ModelBuilder()
    a, b = (builder.input(name, (1, 4), "int8", 1e30, 0) for name in "ab")
    text = message(builder, builder.mul(a, b, out=(1.0, 0)))
    assert "(MUL) 'mul' would scale its numbers by inf; check the scales of its tensors" in text
