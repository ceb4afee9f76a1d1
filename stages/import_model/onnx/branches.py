"""If with a condition that is known when the model is imported: the branch that is taken, in its place.

A condition is known where it follows from constants, and from shapes of tensors, which are fixed: exporters ask so
whether an axis is 1.
"""

from __future__ import annotations

import onnx
from onnx import helper

from stages.import_model.onnx.known_values import known_constants
from stages.import_model.onnx.subgraphs import all_names, defined, rename, subgraphs


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
    constants = known_constants(model) if places else {}
    for place in places:
        node = model.graph.node[place]
        value = constants.get(node.input[0]) if node.input else None
        if value is None or value.size != 1 or any(one.sparse_initializer for one in subgraphs(node)):
            continue
        taken = bool(value.reshape(-1)[0])
        if len(_branch(node, taken).output) >= len(node.output):
            return place, taken
    return None


def _branch(node: onnx.NodeProto, taken: bool) -> onnx.GraphProto:
    wanted = "then_branch" if taken else "else_branch"
    return next(one.g for one in node.attribute if one.name == wanted)


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
