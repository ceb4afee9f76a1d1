"""Resource variables: what the file means to LiteRT, what it is normalized to, and what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from stages.base import StageError
from stages.import_model.normalize import normalized
from stages.ir.models.tflite_reader import read
from stages.ir.reference.integer import run_graph
from stages.ir.reference.interpreter import random_inputs
from stages.ir.reference.partitions import reference_of
from tests.support.integer import integer_graph
from tests.support.malformed import altered
from tests.support.variables import Streaming, frames, litert_outputs

STEPS = 5


def same(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_the_oracle_and_the_graph_do_what_litert_does(dtype: str) -> None:
    data = frames(dtype)
    normalized_data = normalized(data, "frames.tflite").data
    reference, graph = reference_of(normalized_data), integer_graph(normalized_data) if dtype == "int8" else None
    for sequence in range(2):
        samples = [random_inputs(read(normalized_data), sequence * STEPS + step) for step in range(STEPS)]
        reference.reset()
        states = None
        for inputs, expected in zip(samples, litert_outputs(data, samples), strict=True):
            assert same(reference.run(inputs), expected)
            if graph is not None:
                values = run_graph(graph, inputs, None, states)
                states = {name: values[name] for name, tensor in graph.tensors.items() if tensor.state}
                assert same([values[name] for name in graph.outputs], expected)


def test_a_value_that_was_written_is_read_again() -> None:
    """READ, ASSIGN, READ: the second sees the new value, and what was read first is still the old one."""
    b = Streaming()
    x = b.input("x", (4,), "float32")
    handle = b.resource("last", np.arange(4, dtype=np.float32))
    before = b.read(handle, (4,), "float32")
    b.assign(handle, b.add(before, x, name="sum"))
    after = b.read(handle, (4,), "float32")
    b.output(b.sub(after, before, name="step"), b.mul(after, before, name="product"))
    data = b.build()
    reference = reference_of(normalized(data, "m").data)
    samples = [[np.full(4, step, np.float32)] for step in range(3)]
    for inputs, expected in zip(samples, litert_outputs(data, samples), strict=True):
        assert same(reference.run(inputs), expected)


def test_what_is_never_written_is_a_constant() -> None:
    b = Streaming()
    x = b.input("x", (4,), "float32")
    b.output(b.add(x, b.read(b.resource("bias", np.arange(4, dtype=np.float32)), (4,), "float32")))
    info = normalized(b.build(), "m").info
    assert [operator.op for operator in info.operators] == ["ADD"]
    assert [tensor.values().tolist() for tensor in info.tensors if tensor.data is not None] == [[0, 1, 2, 3]]


def test_a_variable_without_a_first_value_is_refused() -> None:
    b = Streaming()
    x = b.input("x", (4,), "float32")
    handle = b.resource("state", None)
    y = b.add(x, b.read(handle, (4,), "float32"))
    b.assign(handle, y)
    b.output(y)
    with pytest.raises(StageError, match="variable 'state' is read without an initial value"):
        normalized(b.build(), "net.tflite")


def test_another_shape_is_refused() -> None:
    b = Streaming()
    x = b.input("x", (4,), "float32")
    handle = b.resource("state", np.zeros(4, np.float32))
    b.output(b.add(x, b.read(handle, (4,), "float32")))
    b.assign(handle, b.input("n", (2, 2), "float32"))
    with pytest.raises(StageError) as caught:
        integer_graph(normalized(b.build(), "m").data)
    assert "writes float32[2, 2] of 'n' to the variable 'state', which is float32[4]" in caught.value.message


def test_a_beginning_that_computes_is_refused() -> None:
    """CALL_ONCE also makes tables of words, say."""
    table = schema.BuiltinOperator.HASHTABLE_IMPORT

    def computing(model: Any, graph: Any) -> None:
        model.operatorCodes.append(schema.OperatorCodeT(builtinCode=table, deprecatedBuiltinCode=127))
        model.subgraphs[1].operators[-1].opcodeIndex = len(model.operatorCodes) - 1

    with pytest.raises(StageError, match=r"\(CALL_ONCE\) initializes variables with HASHTABLE_IMPORT; only constants"):
        normalized(altered(frames("int8"), computing), "net.tflite")
