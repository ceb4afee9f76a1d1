"""Operators that ONNX does not have in the opset of the file, or of a domain that the file imports none of.

Two that ONNX Runtime computes in files of any opset are known all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from stages.support.messages import escape
from stages.support.messages.operator_error import OperatorError, together
from stages.support.messages.wording import several

RUNTIMES_OWN = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})
"""Operators of ONNX' own domain that ONNX Runtime has in opsets in which ONNX has not."""
_OWN = "A plug-in of the project can say what it computes (docs/how-to/add_operator.md)."


def refuse_unregistered(model: onnx.ModelProto) -> None:
    """Raises StageError that names them all, by the numbers of the graph's operators that they are or stand in."""
    versions = {_domain(entry.domain): entry.version for entry in model.opset_import}
    functions = {(function.domain, function.name) for function in model.functions}
    errors = [
        error
        for index, outer in enumerate(model.graph.node)
        for node in _with_inner(outer)
        if (node.domain, node.op_type) not in functions and (error := _error(index, node, versions)) is not None
    ]
    if errors:
        raise together(errors)


def for_checker(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, or a copy in which `RUNTIMES_OWN` are of a domain that onnx's checker does not look into."""
    own = [node for node in model.graph.node if node.op_type in RUNTIMES_OWN and not _domain(node.domain)]
    if not own:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if node.op_type in RUNTIMES_OWN and not _domain(node.domain):
            node.domain = "com.microsoft"
    copy.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return copy


def _with_inner(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """An operator and those of the graphs in it."""
    yield node
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            for inner in graph.node:
                yield from _with_inner(inner)


def _error(index: int, node: onnx.NodeProto, versions: dict[str, int]) -> OperatorError | None:
    domain = _domain(node.domain)
    if domain not in versions:
        called = escape.quoted(domain or "ai.onnx")
        hint = f"Export it with onnx.helper.make_opsetid({called}, …) among opset_imports."
        return _made(index, node, f"is of the domain {called}, of which the file imports no opset", hint)
    known = [one for one in onnx.defs.get_all_schemas_with_history() if one.domain == domain]
    if domain == "" and node.op_type in RUNTIMES_OWN:
        return None
    if not known:  # of a domain that is not ONNX' own
        return None
    version, called = versions[domain], "opset" if domain == "" else f"opset of {domain}"
    of_name = {one.since_version: one for one in known if one.name == node.op_type}
    if not of_name:
        hint = f"Give an operator of your own a domain of its own. {_OWN}"
        return _made(index, node, f"is in no {called} of ONNX", hint)
    if version < min(of_name):
        what = f"is an operator from {called} {min(of_name)} on; the file has {version}"
        return _made(index, node, what, f"Export it with opset_version={min(of_name)} or newer.")
    current = of_name[max(since for since in of_name if since <= version)]
    if current.deprecated:
        what = f"is no operator any more from {called} {current.since_version} on; the file has {version}"
        return _made(index, node, what, f"Export it with opset_version={current.since_version - 1}.")
    return None


def _made(index: int, node: onnx.NodeProto, what: str, hint: str) -> OperatorError:
    domain = _domain(node.domain)
    sides = (several([escape.quoted(name) for name in names if name], 4) for names in (node.input, node.output))
    op = escape.name(f"{domain}.{node.op_type}" if domain else node.op_type)
    name = node.name or (node.output[0] if node.output else "")
    return OperatorError(index, op, name, what, " -> ".join(sides), hint=hint, named=True)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain
