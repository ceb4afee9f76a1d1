"""Options as the generated reader of the schema has them, of sound files; and what damaged ones give."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from stages.base import StageError
from stages.models.builder import ModelBuilder
from stages.models.operator_options import tables
from stages.models.tflite_reader import read

# Ours -> the schema's, where it is more than another way to write the words.
_NAMES = {
    "cell_activation": "fusedActivationFunction",
    "activation": "fusedActivationFunction", "stride_w": "strideW", "stride_h": "strideH",
    "dilation_w": "dilationWFactor", "dilation_h": "dilationHFactor", "filter_w": "filterWidth",
    "filter_h": "filterHeight",
}  # fmt: skip


def schema_name(field: str) -> str:
    first, *rest = field.split("_")
    return _NAMES.get(field) or first + "".join(word.capitalize() for word in rest)


def one_operator(table: str, fields: dict[str, object]) -> bytes:
    """A file whose only operator has these options; the operator itself does not matter here."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4), "float32"), b.tensor("y", (1, 4), "float32")
    b.operator("RELU", [x], [y], table, fields)
    b.output(y)
    return b.build()


@pytest.mark.parametrize("table", tables())
def test_every_field_is_found_at_its_place(table: str) -> None:
    """Each field gets a value of its own, so that two that change places are seen."""
    kinds = {"byte": int, "int": int, "one": int, "bool": lambda n: bool(n % 2), "float": lambda n: n + 0.25}
    values = {
        name: (n, n + 1) if kind == "ints" else kinds[kind](n)
        for n, (name, kind) in enumerate(tables()[table].kinds, start=3)
        if name
    }
    written = {schema_name(k): np.array(v, np.int32) if isinstance(v, tuple) else v for k, v in values.items()}
    (operator,) = read(one_operator(table, written)).operators
    assert operator.options is not None
    assert (operator.options.table, dict(operator.options.fields)) == (table, values)


@pytest.mark.parametrize("table", tables())
def test_fields_that_are_left_out_have_the_values_of_the_schema(table: str) -> None:
    (operator,) = read(one_operator(table, {})).operators
    assert operator.options is not None
    plain = getattr(schema, f"{table}T")()
    for name, value in operator.options.fields.items():
        expected = getattr(plain, schema_name(name))
        assert value == (() if expected is None else expected), name
    assert set(tables()[table].defaults) == set(operator.options.fields)


def test_without_a_table_there_are_no_options_and_another_table_keeps_its_name() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4), "float32")
    y = b.tensor("y", (1, 4), "float32")
    b.operator("TANH", [x], [y])
    z = b.tensor("z", (1, 4), "float32")
    b.operator("RELU", [y], [z], "LSTMOptions")
    b.output(z)
    tanh, relu = read(b.build()).operators
    assert tanh.options is None
    assert relu.options is not None and relu.options.table == "LSTMOptions" and not relu.options.fields


def test_a_list_that_ends_beyond_the_file_is_refused() -> None:
    data = one_operator("ReshapeOptions", {"newShape": np.array([7777, 2], np.int32)})
    at = data.index(np.array([2, 7777], "<i4").tobytes())
    damaged = data[:at] + np.array([1 << 30], "<u4").tobytes() + data[at + 4 :]
    with pytest.raises(StageError, match=r"a list in the options of operator 0 \(RELU\) ends beyond the file"):
        read(damaged)
