"""Check which operators write and read the tensors of a graph."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stages.ir.models.flatbuffer import Corrupt
from stages.support.messages import escape
from stages.support.messages.operator_error import operator_label

if TYPE_CHECKING:
    from stages.ir.model_info import ModelInfo, OperatorInfo


def check_order(graph: ModelInfo) -> None:
    """Raise Corrupt unless every tensor has one source before it is read.

    A source is a constant, a variable, an input, or one operator. `graph.inputs` may name constants, as some exporters
    do; outputs may be listed twice, inputs not.
    """
    if graph.inputs and not graph.outputs:  # a graph of CALL_ONCE has neither
        raise Corrupt("the graph has no outputs")
    for index, times in Counter(graph.inputs).items():
        if times > 1 and graph.tensors[index].data is None:
            raise Corrupt(f"the graph lists its input {_named(graph, index)} twice")
    writers = {index: operator for operator in reversed(graph.operators) for index in operator.outputs}
    origins = dict.fromkeys(graph.inputs, "an input of the graph")
    origins |= {tensor.index: "a variable" for tensor in graph.tensors if tensor.variable}
    origins |= {tensor.index: "a constant" for tensor in graph.tensors if tensor.data is not None}
    for operator in graph.operators:
        for index in operator.inputs:
            if index >= 0 and index not in origins:
                later = f"{_called(writers[index])} writes later" if index in writers else "nothing writes"
                raise Corrupt(f"{_called(operator)} reads {_named(graph, index)}, which {later}")
        for index in operator.outputs:
            if index in origins:
                raise Corrupt(f"{_called(operator)} overwrites {_named(graph, index)}, {origins[index]}")
            origins[index] = f"a result of {_called(operator)}"
    for index in graph.outputs:
        if index not in origins:
            raise Corrupt(f"nothing computes the output {_named(graph, index)}")


def _called(operator: OperatorInfo) -> str:
    return operator_label(operator.index, operator.op)


def _named(graph: ModelInfo, index: int) -> str:
    return f"tensor {index} {escape.quoted(graph.tensors[index].name)}"
