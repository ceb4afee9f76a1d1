"""Replace an If whose condition is known at import by the selected branch.

A condition is known if it follows from constants and from shapes, which are fixed. Exporters use this to test whether
an axis is 1.
"""

import onnx
from onnx import helper

from stages.import_model.onnx.known_values import known_constants
from stages.import_model.onnx.subgraphs import all_names, defined, rename, subgraphs


def inline_known_branches(model: onnx.ModelProto) -> bool:
    """Replace each If with a known condition, also inside of branches.

    Returns whether an If was replaced. Input shapes are fixed. An If with an unknown condition stays.
    """
    changed = False
    while (next_known := _known(model)) is not None:
        place, condition = next_known
        _replace(model.graph, place, condition)
        changed = True
    return changed


def _known(model: onnx.ModelProto) -> tuple[int, bool] | None:
    """Return position and condition of the first If with a known condition."""
    places = [place for place, node in enumerate(model.graph.node) if node.op_type == "If" and not node.domain]
    constants = known_constants(model) if places else {}
    for place in places:
        node = model.graph.node[place]
        value = constants.get(node.input[0]) if node.input else None
        if value is None or value.size != 1 or any(subgraph.sparse_initializer for subgraph in subgraphs(node)):
            continue
        condition = bool(value.reshape(-1)[0])
        if len(_branch(node, condition).output) >= len(node.output):
            return place, condition
    return None


def _branch(node: onnx.NodeProto, condition: bool) -> onnx.GraphProto:
    branch_name = "then_branch" if condition else "else_branch"
    return next(attribute.g for attribute in node.attribute if attribute.name == branch_name)


def _replace(graph: onnx.GraphProto, place: int, condition: bool) -> None:
    """Replace the If at `place` by a branch; names that are already used get a number."""
    node = onnx.NodeProto()
    node.CopyFrom(graph.node[place])
    branch = _branch(node, condition)
    del graph.node[place]
    computed = {name for inner in branch.node for name in inner.output}
    names: dict[str, str] = {}
    copies = []
    results = [*node.output, *[""] * len(branch.output)]  # the If may omit the last ones
    for end, out in zip(branch.output, results, strict=False):
        if out and end.name in computed and end.name not in names:
            names[end.name] = out
        else:  # a constant, an outer value, or a repeated or unnamed result
            copies.append((end.name, out))
    used = all_names(graph)
    for name in sorted(defined(branch) - names.keys()):
        names[name] = _unused(name, used)
    for tensor in branch.initializer:
        tensor.name = names[tensor.name]
    graph.initializer.extend(branch.initializer)
    nodes = list(branch.node)
    used_node_names = {inner_node.name for inner_node in graph.node}
    for inner in nodes:
        rename(inner, names)
        inner.name = _unused(inner.name, used_node_names) if inner.name else ""
    nodes += [
        helper.make_node("Identity", [names.get(source, source)], [out], name=out) for source, out in copies if out
    ]
    remainder = list(graph.node)[place:]
    del graph.node[place:]
    graph.node.extend([*nodes, *remainder])


def _unused(name: str, used: set[str]) -> str:
    """Return the name, with a number if it is in `used`, and add it there."""
    candidate, number = name, 1
    while candidate in used:
        number += 1
        candidate = f"{name}#{number}"
    used.add(candidate)
    return candidate
