"""Resource variables, by which Keras keeps state, as variable tensors.

A file has a handle for each variable, and operators that read and write through it; what a variable holds at first is
written by a graph that CALL_ONCE runs:

    CALL_ONCE(graph: ASSIGN_VARIABLE(handle, constant))          handle = VAR_HANDLE("name")
    r = READ_VARIABLE(handle)                                    ASSIGN_VARIABLE(handle, x)

Here operators read and write the variable tensor v of that name themselves, and ASSIGN_VARIABLE has what v is after a
reset, and a result, equal to x, as all operators have one:

    r = READ_VARIABLE(v)                                         y = ASSIGN_VARIABLE(v, x, constant)

What is read and never written is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.base import StageError
from stages.import_model.checks import check_all_counts
from stages.import_model.normalize.graph import OneGraph, one_graph
from stages.ir.models.graphs import graphs
from stages.ir.models.tflite_reader import builtin_name, read
from stages.support.messages import escape
from stages.support.messages.operator_error import called

OPERATORS = frozenset({"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})
_EXPORT = "Give it a value where it is made: tf.Variable(tf.zeros(...))."

Name = tuple[bytes, bytes]  # container, shared name


@dataclass
class _Variable:
    """`first`: the constant that it begins with, of a graph that CALL_ONCE runs, and its bytes; `readers` and `writers`
    are numbers of operators.
    """

    first: tuple[Any, bytes] | None
    readers: list[int]
    writers: list[int]


def plain_variables(graph: OneGraph, data: bytes, name: str) -> list[str]:
    """Changes the graph; the names of its variables. `data` is the whole file.

    Raises StageError for one that is read and has no value at first, for two types of one variable, and for an
    initialization that does more than to assign constants.
    """
    handles = _handles(graph.operators, graph)
    firsts = _firsts(graph, data, name)
    found: dict[Name, _Variable] = {}
    for number, operator in enumerate(graph.operators):
        op = _op(graph, operator)
        if op in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
            handle = handles.get(int(operator.inputs[0]))
            if handle is None:
                raise StageError(f"{name}: {called(number, op)} takes a variable that no VAR_HANDLE names")
            variable = found.setdefault(handle, _Variable(firsts.get(handle), [], []))
            (variable.readers if op == "READ_VARIABLE" else variable.writers).append(number)
    removed = {n for n, one in enumerate(graph.operators) if _op(graph, one) in ("CALL_ONCE", "VAR_HANDLE")}
    for handle, variable in found.items():
        removed |= _plain(graph, handle, variable, name)
    graph.remove(removed)
    return [_shown(handle) for handle in found]


def _plain(graph: OneGraph, handle: Name, variable: _Variable, name: str) -> set[int]:
    """Changes the operators of one variable; those that are no more needed."""
    values = [graph.tensors[int(graph.operators[n].outputs[0])] for n in variable.readers]
    values += [graph.tensors[int(graph.operators[n].inputs[1])] for n in variable.writers]
    begin = [variable.first[0]] if variable.first else []
    types = {tensor.type for tensor in (*values, *begin)}
    if len(types) > 1:
        raise StageError(f"{name}: variable {_shown(handle)} is read and written in {len(types)} types")
    read_first = variable.readers and not (variable.writers and variable.writers[0] < variable.readers[0])
    if read_first and variable.first is None:
        raise StageError(f"{name}: variable {_shown(handle)} is read, and nothing gives it a first value", hint=_EXPORT)
    shape = next((one.shape for one in (*begin, *values) if _is_known(one)), None)
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
        return set(variable.writers)  # nobody reads what they write
    first = None if variable.first is None else _constant(graph, *variable.first)
    state = _state(graph, handle, values[0], shape)
    for n in variable.readers:
        graph.operators[n].inputs = np.array([state], np.int32)
    for n in variable.writers:
        operator = graph.operators[n]
        inputs = [state, int(operator.inputs[1]), *([first] if first is not None else [])]
        operator.inputs, operator.outputs = np.array(inputs, np.int32), np.array([_written(graph, state)], np.int32)
    return set()


def _state(graph: OneGraph, handle: Name, like: Any, shape: Any) -> int:
    from ai_edge_litert import schema_py_generated as schema

    name = b"/".join(part for part in handle if part)
    made = schema.TensorT(name=name, shape=shape, type=like.type, isVariable=True, hasRank=True)
    made.quantization = like.quantization
    graph.tensors.append(made)
    return len(graph.tensors) - 1


def _written(graph: OneGraph, state: int) -> int:
    """The result of an ASSIGN_VARIABLE."""
    from ai_edge_litert import schema_py_generated as schema

    of = graph.tensors[state]
    made = schema.TensorT(name=of.name + b"/written", shape=of.shape, type=of.type, hasRank=True)
    made.quantization = of.quantization
    graph.tensors.append(made)
    return len(graph.tensors) - 1


def _constant(graph: OneGraph, tensor: Any, data: bytes) -> int:
    """A constant of another graph in this one."""
    tensor.buffer = _buffer(graph, data)
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _buffer(graph: OneGraph, data: bytes) -> int:
    graph.buffers.append(memoryview(data))
    return len(graph.buffers) - 1


def _is_known(tensor: Any) -> bool:
    """Whether the file says its shape: one without axes may be left out."""
    return tensor.shape is not None and len(tensor.shape) > 0 and min(tensor.shape) > 0


def _handles(operators: list[Any], graph: OneGraph) -> dict[int, Name]:
    """The variable that each tensor made by a VAR_HANDLE stands for."""
    found = {}
    for operator in operators:
        if _op(graph, operator) == "VAR_HANDLE":
            options = operator.builtinOptions
            name = (getattr(options, "container", None) or b"", getattr(options, "sharedName", None) or b"")
            found[int(operator.outputs[0])] = name
    return found


def _firsts(graph: OneGraph, data: bytes, name: str) -> dict[Name, tuple[Any, bytes]]:
    """What variables begin with: constant tensors of the graphs that CALL_ONCE runs, and their bytes."""
    found: dict[Name, tuple[Any, bytes]] = {}
    for number, operator in enumerate(graph.operators):
        if _op(graph, operator) == "CALL_ONCE":
            run = getattr(operator.builtinOptions, "initSubgraphIndex", -1)
            found |= _begun(data, run, f"{name}: {called(number, 'CALL_ONCE')}", name)
    return found


def _begun(data: bytes, run: int, who: str, name: str) -> dict[Name, tuple[Any, bytes]]:
    """What a graph assigns. Raises StageError, which begins with `who`, for one that does anything else."""
    count = graphs(data, name).count
    if not 0 < run < count:
        raise StageError(f"{who} runs subgraph {run} of {count}")
    check_all_counts(read(data, name, run))
    begun, found = one_graph(data, name, run), {}
    handles = _handles(begun.operators, begun)
    for operator in begun.operators:
        op = _op(begun, operator)
        if op == "VAR_HANDLE":
            continue
        handle = handles.get(int(operator.inputs[0])) if op == "ASSIGN_VARIABLE" else None
        tensor = begun.tensors[int(operator.inputs[1])] if handle is not None else None
        if handle is None or tensor is None or not len(begun.buffers[tensor.buffer]):
            what = op if op != "ASSIGN_VARIABLE" else "ASSIGN_VARIABLE of what is no constant"
            raise StageError(
                f"{who} begins with {what}; variables are given constants there",
                hint="Tables and values that are computed at first belong into the code that calls the model.",
            )
        found[handle] = tensor, bytes(begun.buffers[tensor.buffer])
    return found


def _op(graph: OneGraph, operator: Any) -> str:
    code = graph.codes[operator.opcodeIndex]
    return builtin_name(max(code.builtinCode, code.deprecatedBuiltinCode))


def _shown(handle: Name) -> str:
    return escape.quoted(b"/".join(part for part in handle if part).decode("utf-8", errors="replace"))
