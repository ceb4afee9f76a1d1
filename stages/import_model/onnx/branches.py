"""If with a condition that is known when the model is imported: the branch that is taken, in its place.

A condition is known where it follows from constants, and from shapes of tensors, which are fixed: exporters ask so
whether an axis is 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from stages.import_model.onnx.subgraphs import all_names, defined, rename, subgraphs

_SHAPES = ("Shape", "Size")


def put_in_line(model: onnx.ModelProto) -> bool:
    """Replaces every If of the graph whose condition is known, those inside of a branch too; whether there was one.

    The shapes of inputs are fixed. What is not known stays as it is.
    """
    changed = False
    while (known := _known(model)) is not None:
        place, taken = known
        _replace(model.graph, place, taken)
        changed = True
    return changed


def _known(model: onnx.ModelProto) -> tuple[int, bool] | None:
    """The first If with a known condition: its place in the graph, and the condition."""
    places = [place for place, node in enumerate(model.graph.node) if node.op_type == "If" and not node.domain]
    if not places:
        return None
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for place in places:
        node = model.graph.node[place]
        value = _value(inferred, node.input[0])
        if value is None or value.size != 1 or any(one.sparse_initializer for one in subgraphs(node)):
            continue
        taken = bool(value.reshape(-1)[0])
        if len(_branch(node, taken).output) >= len(node.output):
            return place, taken
    return None


def _branch(node: onnx.NodeProto, taken: bool) -> onnx.GraphProto:
    wanted = "then_branch" if taken else "else_branch"
    return next(one.g for one in node.attribute if one.name == wanted)


def _value(model: onnx.ModelProto, name: str) -> np.ndarray | None:
    """What a name stands for, None where that depends on the inputs, or cannot be computed."""
    graph = model.graph
    constants = {one.name: one for one in graph.initializer}
    if name in constants:
        return np.asarray(numpy_helper.to_array(constants[name]))
    makers = {out: place for place, node in enumerate(graph.node) for out in node.output}
    sizes = _sizes(graph)
    needed, waiting, given = set[int](), [name], dict[str, np.ndarray]()
    while waiting:
        one = waiting.pop()
        if one in constants or one in given:
            continue
        if one not in makers:
            return None
        node = graph.node[makers[one]]
        if node.op_type in _SHAPES and not node.domain:
            if node.input[0] not in sizes:
                return None
            given[one] = _asked(node, sizes[node.input[0]])
        elif makers[one] not in needed:
            if node.op_type.startswith("Random") or any(True for _ in subgraphs(node)):
                return None
            needed.add(makers[one])
            waiting += [read for read in node.input if read]
    if name in given:
        return given[name]
    nodes = [graph.node[place] for place in sorted(needed)]
    read = {one for node in nodes for one in node.input}
    tensors = [constants[one] for one in sorted(read & constants.keys())]
    tensors += [numpy_helper.from_array(values, one) for one, values in given.items()]
    part = helper.make_graph(nodes, "condition", [], [helper.make_empty_tensor_value_info(name)], tensors)
    made = helper.make_model(part, opset_imports=model.opset_import, ir_version=model.ir_version)
    try:
        return np.asarray(ReferenceEvaluator(made).run(None, {})[0])
    except Exception:  # the evaluator raises anything for an operator that contradicts itself
        return None


def _sizes(graph: onnx.GraphProto) -> Mapping[str, tuple[int, ...]]:
    """The shapes of tensors that are fixed."""
    found = {one.name: tuple(one.dims) for one in graph.initializer}
    for one in (*graph.input, *graph.value_info, *graph.output):
        shape = one.type.tensor_type.shape
        if one.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in shape.dim):
            found[one.name] = tuple(dim.dim_value for dim in shape.dim)
    return found


def _asked(node: onnx.NodeProto, shape: tuple[int, ...]) -> np.ndarray:
    if node.op_type == "Size":
        return np.array(np.prod(shape, dtype=np.int64), np.int64)
    ends = {one.name: one.i for one in node.attribute}
    return np.array(shape[ends.get("start", 0) : ends.get("end", len(shape))], np.int64)


def _replace(graph: onnx.GraphProto, place: int, taken: bool) -> None:
    """Puts a branch of the If at `place` there; names that stand for something else already get a number."""
    node = onnx.NodeProto()
    node.CopyFrom(graph.node[place])
    branch = _branch(node, taken)
    del graph.node[place]
    made = {name for inner in branch.node for name in inner.output}
    names: dict[str, str] = {}
    same = []
    outs = [*node.output, *[""] * len(branch.output)]  # the last ones may be left out
    for end, out in zip(branch.output, outs, strict=False):
        if out and end.name in made and end.name not in names:
            names[end.name] = out
        else:  # a constant, what is around the branch, a result for the second time, or one without a name
            same.append((end.name, out))
    used = all_names(graph)
    for name in sorted(defined(branch) - names.keys()):
        names[name] = _unused(name, used)
    for tensor in branch.initializer:
        tensor.name = names[tensor.name]
    graph.initializer.extend(branch.initializer)
    nodes = list(branch.node)
    called = {one.name for one in graph.node}
    for inner in nodes:
        rename(inner, names)
        inner.name = _unused(inner.name, called) if inner.name else ""
    nodes += [helper.make_node("Identity", [names.get(read, read)], [out], name=out) for read, out in same if out]
    after = list(graph.node)[place:]
    del graph.node[place:]
    graph.node.extend([*nodes, *after])


def _unused(name: str, used: set[str]) -> str:
    """The name, with a number where it is `used`; it is from now on."""
    found, number = name, 1
    while found in used:
        number += 1
        found = f"{name}#{number}"
    used.add(found)
    return found
