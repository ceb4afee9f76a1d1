"""Replace BIDIRECTIONAL_SEQUENCE_LSTM and _RNN by an operator for each direction.

    forward  = UNIDIRECTIONAL(x)
    backward = REVERSE_V2(UNIDIRECTIONAL(REVERSE_V2(x)))     result = CONCATENATION(forward, backward) if merged

Each direction keeps its states.
LiteRT's merged LSTM mixes up several sequences if time is not the first axis; its separate results are as here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.base import StageError
from stages.import_model.normalize.graph import OneGraph
from stages.ir.models.tflite_reader import builtin_name
from stages.ir.operators.table import OPERATORS
from stages.support.lazy import schema
from stages.support.messages.operator_error import operator_label


@dataclass(frozen=True)
class _Form:
    """The operator of a direction, and positions of inputs.

    directions  inputs of each direction, in the order of `op`
    recurrent   recurrent weights of each direction, [units, units]
    auxiliary   position of the auxiliary input; its weights follow
    """

    op: str
    table: str
    directions: tuple[tuple[int, ...], tuple[int, ...]]
    recurrent: tuple[int, int]
    auxiliary: int


_FORMS = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": _Form(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UnidirectionalSequenceLSTMOptions",
        ((*range(1, 18), 35, 36), (*range(18, 35), 37, 38)),
        (6, 23),
        39,
    ),
    "BIDIRECTIONAL_SEQUENCE_RNN": _Form(
        "UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions", ((1, 2, 3, 4), (5, 6, 7, 8)), (2, 6), 9
    ),
}
BIDIRECTIONAL = frozenset(_FORMS)


def split_directions(graph: OneGraph, name: str) -> list[str]:
    """Replace the operators. Return notes on those whose results differ from LiteRT's.

    Raises StageError for a malformed operator, and for an auxiliary input.
    """
    operators, graph.operators = graph.operators, []
    notes: list[str] = []
    for number, operator in enumerate(operators):
        code = graph.codes[operator.opcodeIndex]
        op = builtin_name(max(code.builtinCode, code.deprecatedBuiltinCode))
        if op in _FORMS:
            label = operator_label(number, op)
            if _split(graph, operator, _FORMS[op], f"{name}: {label}") and op.endswith("LSTM"):
                notes.append(f"{label} has several sequences: LiteRT mixes up its outputs, the firmware does not")
        else:
            graph.operators.append(operator)
    return notes


def _split(graph: OneGraph, operator: Any, form: _Form, label: str) -> bool:
    """Append an operator for each direction.

    Return whether it merges several sequences with time as axis 1.
    """
    inputs, outputs = [int(index) for index in operator.inputs], [int(index) for index in operator.outputs]
    options = vars(operator.builtinOptions) if operator.builtinOptions is not None else {}
    is_merged = bool(options.get("mergeOutputs"))
    if len(inputs) <= form.auxiliary or len(outputs) != (1 if is_merged else 2):
        raise StageError(f"{label} has a wrong number of tensors: {len(inputs)} inputs, {len(outputs)} outputs")
    if any(index >= 0 for index in inputs[form.auxiliary :]):
        raise StageError(f"{label} has an auxiliary input, which is not supported")
    source, weights = inputs[0], [inputs[position] for position in form.recurrent]
    if min(source, *weights) < 0 or len(_shape(graph, source)) != 3:
        raise StageError(f"{label} needs recurrent weights of both directions and an input of 3 axes")
    axis = 0 if options.get("timeMajor") else 1
    fields = {key: value for key, value in options.items() if key != "mergeOutputs"}
    results = []
    for number, positions in enumerate(form.directions):
        shape = [*_shape(graph, source)[:2], *_shape(graph, weights[number])[:1]]
        result = _tensor(graph, outputs[0], shape, f"direction{number}") if is_merged else outputs[number]
        graph.set_shapes({result: tuple(shape)})
        rows, steps = source, result
        if number:
            rows = _tensor(graph, source, _shape(graph, source), "reversed")
            steps = _tensor(graph, result, shape, "backwards")
            _reverse(graph, source, rows, axis)
        _append(graph, form.op, [rows, *(inputs[position] for position in positions)], steps, form.table, fields)
        if number:
            _reverse(graph, steps, result, axis)
        results.append(result)
    if is_merged:
        _append(graph, "CONCATENATION", results, outputs[0], "ConcatenationOptions", {"axis": 2})
    return is_merged and axis == 1 and _shape(graph, source)[0] > 1


def _shape(graph: OneGraph, index: int) -> list[int]:
    shape = graph.tensors[index].shape
    return [] if shape is None else [int(size) for size in shape]


def _tensor(graph: OneGraph, like: int, shape: Sequence[int], suffix: str) -> int:
    """Append a tensor with the type of another one; return its number."""
    original = graph.tensors[like]
    name = (original.name or b"") + f"/{suffix}".encode()
    graph.tensors.append(schema.TensorT(name=name, type=original.type, shape=np.array(shape, np.int32), hasRank=True))
    return len(graph.tensors) - 1


def _reverse(graph: OneGraph, source: int, result: int, axis: int) -> None:
    graph.tensors.append(schema.TensorT(name=b"axis", type=schema.TensorType.INT32, hasRank=True))
    graph.make_constant({len(graph.tensors) - 1: np.array([axis], np.int32)})
    _append(graph, "REVERSE_V2", [source, len(graph.tensors) - 1], result, "ReverseV2Options", {})


def _append(graph: OneGraph, op: str, inputs: Sequence[int], output: int, table: str, fields: dict[str, Any]) -> None:
    code = getattr(schema.BuiltinOperator, op)
    version = 1 if op in (form.op for form in _FORMS.values()) else OPERATORS[op].litert.version
    graph.codes.append(schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=version))
    operator = schema.OperatorT(opcodeIndex=len(graph.codes) - 1)
    operator.inputs, operator.outputs = np.array(inputs, np.int32), np.array([output], np.int32)
    operator.builtinOptionsType = getattr(schema.BuiltinOptions, table)
    operator.builtinOptions = getattr(schema, f"{table}T")(**fields)
    graph.operators.append(operator)
