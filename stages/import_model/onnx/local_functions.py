"""Inline local functions of an ONNX file, which torch exports for modules."""

from collections.abc import Iterator, Mapping, Sequence

import onnx
from onnx import inliner

from stages.import_model.onnx.subgraphs import subgraphs

Key = tuple[str, str, str]


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without local functions; itself if it has none.

    `onnx.inliner` lacks two things, which are added here: default values of attributes, and results that are inputs of
    the function. Functions of another opset than the model's are converted. Raises errors of `onnx`.
    """
    if not model.functions:
        return model
    prepared = onnx.ModelProto()
    prepared.CopyFrom(model)
    functions = {_key(function.domain, function.name, function.overload): function for function in prepared.functions}
    for function in prepared.functions:
        _copy_passed_inputs(function)
    # A default may pass through several functions: each iteration copies it to the next one.
    while any(_inherit_defaults(function, functions) for function in prepared.functions):
        pass
    for nodes in (prepared.graph.node, *(function.node for function in prepared.functions)):
        for node in _with_inner(nodes):
            function = functions.get(_key_of(node))
            if function is not None:
                attribute_names = {attribute.name for attribute in node.attribute}
                node.attribute.extend(
                    default for default in function.attribute_proto if default.name not in attribute_names
                )
    for function in prepared.functions:  # operators of a domain that only functions import
        known = {entry.domain for entry in prepared.opset_import}
        prepared.opset_import.extend(entry for entry in function.opset_import if entry.domain not in known)
    versions = {entry.domain: entry.version for entry in prepared.opset_import}
    differs = any(
        versions[entry.domain] != entry.version for function in prepared.functions for entry in function.opset_import
    )
    if differs:  # the conversion needs the types of the functions' results
        prepared = onnx.shape_inference.infer_shapes(prepared)
    return inliner.inline_local_functions(prepared, convert_version=differs)


def _inherit_defaults(outer: onnx.FunctionProto, functions: Mapping[Key, onnx.FunctionProto]) -> bool:
    """Pass defaults of called functions' attributes to `outer`; return whether any changed."""
    changed = False
    for node in _with_inner(outer.node):
        called = functions.get(_key_of(node))
        defaults = {default.name: default for default in called.attribute_proto} if called is not None else {}
        for attribute in node.attribute:
            name = attribute.ref_attr_name
            if name in outer.attribute and attribute.name in defaults:
                outer.attribute.remove(name)
                added = outer.attribute_proto.add()
                added.CopyFrom(defaults[attribute.name])
                added.name = name
                changed = True
    return changed


def _key_of(node: onnx.NodeProto) -> Key:
    return _key(node.domain, node.op_type, node.overload)


def _key(domain: str, name: str, overload: str) -> Key:
    return "" if domain == "ai.onnx" else domain, name, overload


def _with_inner(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield operators, and the operators of graphs inside of them."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from _with_inner(graph.node)


def _copy_passed_inputs(function: onnx.FunctionProto) -> None:
    """Rename results that are inputs or repeated results, with an Identity."""
    seen = set(function.input)
    for place, name in enumerate(function.output):
        if name in seen:
            function.output[place] = f"{name}/passed{place}"
            function.node.append(onnx.helper.make_node("Identity", [name], [function.output[place]]))
        seen.add(name)
