"""Operators that are not in the file's opset, or whose domain the file does not import.

Two operators that ONNX Runtime computes in any opset are accepted.
"""

from collections.abc import Iterator

import onnx

from stages.support.messages import escape
from stages.support.messages.operator_error import OperatorError, combined_error
from stages.support.messages.wording import several

RUNTIME_OPERATORS = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})
"""Operators of ONNX' own domain that ONNX Runtime has in opsets in which ONNX has not."""
_PLUGIN_HINT = "A plug-in can define it (docs/how-to/add_operator.md)."


def refuse_unregistered(model: onnx.ModelProto) -> None:
    """Raise StageError that lists all unregistered operators of the graph."""
    versions = {_domain(entry.domain): entry.version for entry in model.opset_import}
    functions = {(function.domain, function.name) for function in model.functions}
    errors = [
        error
        for index, outer in enumerate(model.graph.node)
        for node in _with_inner(outer)
        if (node.domain, node.op_type) not in functions and (error := _error(index, node, versions)) is not None
    ]
    if errors:
        raise combined_error(errors)


def for_checker(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model, with `RUNTIME_OPERATORS` moved to a domain that onnx's checker ignores."""
    extra = [node for node in model.graph.node if node.op_type in RUNTIME_OPERATORS and not _domain(node.domain)]
    if not extra:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if node.op_type in RUNTIME_OPERATORS and not _domain(node.domain):
            node.domain = "com.microsoft"
    copy.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return copy


def _with_inner(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Yield an operator and the operators of its subgraphs."""
    yield node
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            for inner in graph.node:
                yield from _with_inner(inner)


def _error(index: int, node: onnx.NodeProto, versions: dict[str, int]) -> OperatorError | None:
    domain = _domain(node.domain)
    if domain not in versions:
        opset_name = escape.quoted(domain or "ai.onnx")
        hint = f"Export it with onnx.helper.make_opsetid({opset_name}, …) among opset_imports."
        return _operator_error(index, node, f"is in the domain {opset_name}, for which the file imports no opset", hint)
    domain_schemas = [schema for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == domain]
    if domain == "" and node.op_type in RUNTIME_OPERATORS:
        return None
    if not domain_schemas:  # a domain of others
        return None
    version, opset_name = versions[domain], "opset" if domain == "" else f"opset of {domain}"
    versions_of_op = {schema.since_version: schema for schema in domain_schemas if schema.name == node.op_type}
    if not versions_of_op:
        hint = f"Put your own operators in a separate domain. {_PLUGIN_HINT}"
        return _operator_error(index, node, f"is in no {opset_name} of ONNX", hint)
    if version < min(versions_of_op):
        what = f"needs {opset_name} {min(versions_of_op)}; the file has {version}"
        return _operator_error(index, node, what, f"Export it with opset_version={min(versions_of_op)} or newer.")
    current = versions_of_op[max(since for since in versions_of_op if since <= version)]
    if current.deprecated:
        what = f"was removed in {opset_name} {current.since_version}; the file has {version}"
        return _operator_error(index, node, what, f"Export it with opset_version={current.since_version - 1}.")
    return None


def _operator_error(index: int, node: onnx.NodeProto, what: str, hint: str) -> OperatorError:
    domain = _domain(node.domain)
    sides = (several([escape.quoted(name) for name in names if name], 4) for names in (node.input, node.output))
    op = escape.name(f"{domain}.{node.op_type}" if domain else node.op_type)
    name = node.name or (node.output[0] if node.output else "")
    return OperatorError(index, op, name, what, " -> ".join(sides), hint=hint, named=True)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain
