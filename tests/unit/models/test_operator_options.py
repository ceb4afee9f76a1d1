"""Options as the generated reader of the schema has them, of sound files; and what damaged ones give."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from stages.ir.models.builder import ModelBuilder
from stages.ir.models.operator_options import tables
from stages.ir.models.tflite_reader import read

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
