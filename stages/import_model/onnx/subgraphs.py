"""Graphs inside of operators: what they read from around them, and their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among an operator's attributes: the branches of an If, the body of a Loop."""
    for one in node.attribute:
        if one.HasField("g"):
            yield one.g
        yield from one.graphs


def captured(node: onnx.NodeProto) -> set[str]:
    """The names that an operator's graphs read and that none of them defines."""
    return {name for graph in subgraphs(node) for name in _read(graph)}


def _read(graph: onnx.GraphProto) -> set[str]:
    own = defined(graph) | {one.name for one in graph.input}
    read = {name for node in graph.node for name in (*node.input, *captured(node)) if name}
    return (read | {one.name for one in graph.output}) - own


def defined(graph: onnx.GraphProto) -> set[str]:
    """The names of a graph's constants and results, without those inside of its operators."""
    return {one.name for one in graph.initializer} | {name for node in graph.node for name in node.output if name}


def all_names(graph: onnx.GraphProto) -> set[str]:
    """Every name in a graph and in the graphs inside of it."""
    ends = {one.name for one in (*graph.input, *graph.output)}
    inner = [all_names(one) for node in graph.node for one in subgraphs(node)]
    return defined(graph).union(ends, *(node.input for node in graph.node), *inner)


def rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Gives what an operator, and the graphs inside of it, read and write other names."""
    for field in (node.input, node.output):
        field[:] = [names.get(name, name) for name in field]
    for graph in subgraphs(node):
        for one in (*graph.initializer, *graph.output):
            one.name = names.get(one.name, one.name)
        for inner in graph.node:
            rename(inner, names)
