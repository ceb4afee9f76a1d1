"""Replace resource variables, in which Keras keeps state, by variable tensors.

A file has a handle per variable, and operators that read and write it. CALL_ONCE runs a graph with the initial values:

    CALL_ONCE(graph: ASSIGN_VARIABLE(handle, constant))          handle = VAR_HANDLE("name")
    r = READ_VARIABLE(handle)                                    ASSIGN_VARIABLE(handle, x)

After the replacement, operators use the variable tensor v directly. ASSIGN_VARIABLE gets the value after a reset as
third input, and a result equal to x, as every operator has one:

    r = READ_VARIABLE(v)                                         y = ASSIGN_VARIABLE(v, x, constant)

A variable that is never written becomes a constant.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.base import StageError
from stages.import_model.checks import check_all_counts
from stages.import_model.normalize.graph import OneGraph, one_graph
from stages.ir.models.graphs import graphs
from stages.ir.models.tflite_reader import builtin_name, read
from stages.support.lazy import schema
from stages.support.messages import escape
from stages.support.messages.operator_error import operator_label

OPERATORS = frozenset({"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})
_EXPORT = "Initialize it: tf.Variable(tf.zeros(...))."

Name = tuple[bytes, bytes]  # container, shared name


@dataclass
class _Variable:
    """Initial tensor with its bytes; numbers of operators that read and write a variable."""

    first: tuple[Any, bytes] | None
    readers: list[int]
    writers: list[int]


def plain_variables(graph: OneGraph, data: bytes, name: str) -> list[str]:
    """Replace the graph's resource variables; return their names. `data` is the original file.

    Raises StageError for a variable that is read without an initial value, that has two types, or whose initialization
    does more than assign constants.
    """
    handles = _handles(graph.operators, graph)
    initial_values = _initial_values(graph, data, name)
    variables: dict[Name, _Variable] = {}
    for number, operator in enumerate(graph.operators):
        op = _op(graph, operator)
        if op in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
            handle = handles.get(int(operator.inputs[0]))
            if handle is None:
                raise StageError(f"{name}: {operator_label(number, op)} uses a variable without VAR_HANDLE")
            variable = variables.setdefault(handle, _Variable(initial_values.get(handle), [], []))
            (variable.readers if op == "READ_VARIABLE" else variable.writers).append(number)
    removed = {n for n, operator in enumerate(graph.operators) if _op(graph, operator) in ("CALL_ONCE", "VAR_HANDLE")}
    for handle, variable in variables.items():
        removed |= _replace_variable(graph, handle, variable, name)
    graph.remove(removed)
    return [_quoted_name(handle) for handle in variables]


def _replace_variable(graph: OneGraph, handle: Name, variable: _Variable, name: str) -> set[int]:
    """Replace one variable; return the numbers of operators to remove."""
    values = [graph.tensors[int(graph.operators[n].outputs[0])] for n in variable.readers]
    values += [graph.tensors[int(graph.operators[n].inputs[1])] for n in variable.writers]
    initial = [variable.first[0]] if variable.first else []
    types = {tensor.type for tensor in (*values, *initial)}
    if len(types) > 1:
        raise StageError(f"{name}: variable {_quoted_name(handle)} is read and written with {len(types)} types")
    read_first = variable.readers and not (variable.writers and variable.writers[0] < variable.readers[0])
    if read_first and variable.first is None:
        raise StageError(f"{name}: variable {_quoted_name(handle)} is read without an initial value", hint=_EXPORT)
    shape = next((tensor.shape for tensor in (*initial, *values) if _is_known(tensor)), None)
    for n in variable.readers:
        result = graph.tensors[int(graph.operators[n].outputs[0])]
        if shape is not None and not _is_known(result):
            result.shape, result.shapeSignature = shape, None
    if not variable.writers:
        assert variable.first is not None
        for n in variable.readers:
            graph.tensors[int(graph.operators[n].outputs[0])].buffer = _buffer(graph, variable.first[1])
        return set(variable.readers)
    if not variable.readers:
        return set(variable.writers)  # the written values are unused
    initial_index = None if variable.first is None else _constant(graph, *variable.first)
    state = _state(graph, handle, values[0], shape)
    for n in variable.readers:
        graph.operators[n].inputs = np.array([state], np.int32)
    for n in variable.writers:
        operator = graph.operators[n]
        inputs = [state, int(operator.inputs[1]), *([initial_index] if initial_index is not None else [])]
        operator.inputs, operator.outputs = np.array(inputs, np.int32), np.array([_written(graph, state)], np.int32)
    return set()


def _state(graph: OneGraph, handle: Name, like: Any, shape: Any) -> int:
    name = b"/".join(part for part in handle if part)
    variable = schema.TensorT(name=name, shape=shape, type=like.type, isVariable=True, hasRank=True)
    variable.quantization = like.quantization
    graph.tensors.append(variable)
    return len(graph.tensors) - 1


def _written(graph: OneGraph, state: int) -> int:
    """Append the result tensor of an ASSIGN_VARIABLE."""
    state_tensor = graph.tensors[state]
    result = schema.TensorT(
        name=state_tensor.name + b"/written", shape=state_tensor.shape, type=state_tensor.type, hasRank=True
    )
    result.quantization = state_tensor.quantization
    graph.tensors.append(result)
    return len(graph.tensors) - 1


def _constant(graph: OneGraph, tensor: Any, data: bytes) -> int:
    """Append a constant from another graph."""
    tensor.buffer = _buffer(graph, data)
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _buffer(graph: OneGraph, data: bytes) -> int:
    graph.buffers.append(memoryview(data))
    return len(graph.buffers) - 1


def _is_known(tensor: Any) -> bool:
    """Return whether the file states the tensor's shape."""
    return tensor.shape is not None and len(tensor.shape) > 0 and min(tensor.shape) > 0


def _handles(operators: list[Any], graph: OneGraph) -> dict[int, Name]:
    """Return the variable name for each tensor that a VAR_HANDLE writes."""
    handles = {}
    for operator in operators:
        if _op(graph, operator) == "VAR_HANDLE":
            options = operator.builtinOptions
            name = (getattr(options, "container", None) or b"", getattr(options, "sharedName", None) or b"")
            handles[int(operator.outputs[0])] = name
    return handles


def _initial_values(graph: OneGraph, data: bytes, name: str) -> dict[Name, tuple[Any, bytes]]:
    """Return initial tensors and bytes of variables, from the graphs that CALL_ONCE runs."""
    initial_values: dict[Name, tuple[Any, bytes]] = {}
    for number, operator in enumerate(graph.operators):
        if _op(graph, operator) == "CALL_ONCE":
            subgraph = getattr(operator.builtinOptions, "initSubgraphIndex", -1)
            initial_values |= _assigned_constants(
                data, subgraph, f"{name}: {operator_label(number, 'CALL_ONCE')}", name
            )
    return initial_values


def _assigned_constants(data: bytes, subgraph: int, operator_name: str, name: str) -> dict[Name, tuple[Any, bytes]]:
    """Return the values that a graph assigns. Raises StageError for anything but constants."""
    count = graphs(data, name).count
    if not 0 < subgraph < count:
        raise StageError(f"{operator_name} runs subgraph {subgraph}; the file has 0 to {count - 1}")
    check_all_counts(read(data, name, subgraph))
    initialization, assignments = one_graph(data, name, subgraph), {}
    handles = _handles(initialization.operators, initialization)
    for operator in initialization.operators:
        op = _op(initialization, operator)
        if op == "VAR_HANDLE":
            continue
        handle = handles.get(int(operator.inputs[0])) if op == "ASSIGN_VARIABLE" else None
        tensor = initialization.tensors[int(operator.inputs[1])] if handle is not None else None
        if handle is None or tensor is None or not len(initialization.buffers[tensor.buffer]):
            problem = op if op != "ASSIGN_VARIABLE" else "a computed ASSIGN_VARIABLE"
            raise StageError(
                f"{operator_name} initializes variables with {problem}; only constants are supported",
                hint="Compute tables and initial values in the code that calls the model.",
            )
        assignments[handle] = tensor, bytes(initialization.buffers[tensor.buffer])
    return assignments


def _op(graph: OneGraph, operator: Any) -> str:
    code = graph.codes[operator.opcodeIndex]
    return builtin_name(max(code.builtinCode, code.deprecatedBuiltinCode))


def _quoted_name(handle: Name) -> str:
    return escape.quoted(b"/".join(part for part in handle if part).decode("utf-8", errors="replace"))
