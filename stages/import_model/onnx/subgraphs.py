"""Subgraphs of operators: values that they read from outside, and renaming."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stages.support.lazy import onnx


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs in an operator's attributes: branches of an If, body of a Loop."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def captured(node: onnx.NodeProto) -> set[str]:
    """Return the names that an operator's subgraphs read and do not define."""
    return {name for graph in subgraphs(node) for name in _read(graph)}


def _read(graph: onnx.GraphProto) -> set[str]:
    local_names = defined(graph) | {entry.name for entry in graph.input}
    read = {name for node in graph.node for name in (*node.input, *captured(node)) if name}
    return (read | {entry.name for entry in graph.output}) - local_names


def defined(graph: onnx.GraphProto) -> set[str]:
    """Return the names of a graph's constants and results, without subgraphs."""
    return {constant.name for constant in graph.initializer} | {
        name for node in graph.node for name in node.output if name
    }


def all_names(graph: onnx.GraphProto) -> set[str]:
    """Return all names in a graph and its subgraphs."""
    end_names = {entry.name for entry in (*graph.input, *graph.output)}
    inner = [all_names(entry) for node in graph.node for entry in subgraphs(node)]
    return defined(graph).union(end_names, *(node.input for node in graph.node), *inner)


def rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename the values that an operator and its subgraphs read and write."""
    for field in (node.input, node.output):
        field[:] = [names.get(name, name) for name in field]
    for graph in subgraphs(node):
        for tensor in (*graph.initializer, *graph.output):
            tensor.name = names.get(tensor.name, tensor.name)
        for inner in graph.node:
            rename(inner, names)
