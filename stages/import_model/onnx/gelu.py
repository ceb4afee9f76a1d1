"""Fuse Gelu as exporters write it for old opsets: x * (1 + erf(x / sqrt(2))) / 2."""

from __future__ import annotations

from math import sqrt

import numpy as np
import onnx

from stages.import_model.onnx.translation import Node, Translation
from stages.import_model.onnx.values import Constant


def fuse_gelus(t: Translation) -> None:
    """Replace the last operator of each such product by a Gelu; mark the others as done."""
    producers = {name: node for node in t.nodes for name in node.outputs}
    for node in t.nodes:
        match = _match(t, node, producers) if node.op == "Erf" else None
        if match is None:
            continue
        x, last, members = match
        proto = onnx.helper.make_node("Gelu", [x], [last.outputs[0]], name=last.proto.name)
        t.nodes[last.index] = Node(last.index, proto, tuple(t.nodes[index] for index in sorted(members)))
        t.done |= {*members} - {last.index}


def _match(t: Translation, erf: Node, producers: dict[str, Node]) -> tuple[str, Node, list[int]] | None:
    """Return Gelu's input, the operator with its result, and all operators that it replaces."""
    scaled = producers.get(erf.inputs[0])
    if scaled is None or t.only_reader(scaled.outputs[0]) is not erf:
        return None
    x = _scaled(t, scaled, 1 / sqrt(2))
    added = t.only_reader(erf.outputs[0])
    if x is None or added is None or added.op != "Add" or _number(t, _other(added, erf)) != 1.0:
        return None
    members, last, factor, x_factors = [scaled.index, erf.index, added.index], added, 1.0, 0
    while (following := t.only_reader(last.outputs[0])) is not None and following.op in ("Mul", "Div"):
        other = _other(following, last)
        number, producer = _number(t, other), producers.get(other)
        if number is not None and (following.op == "Mul" or following.inputs[0] == last.outputs[0]):
            step, reads = number if following.op == "Mul" else 1 / number, 0
        elif following.op == "Mul" and other == x:
            step, reads = 1.0, 1
        elif (
            following.op == "Mul"
            and producer is not None
            and t.only_reader(other) is following
            and _scaled(t, producer, 0.5) == x
        ):
            step, reads = 0.5, 1
            members.append(producer.index)
        else:
            break
        members.append(following.index)
        last, factor, x_factors = following, factor * step, x_factors + reads
        if (x_factors, factor) == (1, 0.5):
            return x, last, members
    return None


def _scaled(t: Translation, node: Node, factor: float) -> str | None:
    """Return the value that `node` multiplies by `factor`; None for other operators."""
    if node.op not in ("Mul", "Div") or len(node.inputs) != 2:
        return None
    for at in (0, 1):
        number = _number(t, node.inputs[at])
        if number and (node.op == "Mul" or at == 1):
            multiplier = number if node.op == "Mul" else 1 / number
            return node.inputs[1 - at] if np.isclose(multiplier, factor, rtol=1e-6) else None
    return None


def _other(node: Node, before: Node) -> str:
    return node.inputs[1] if node.inputs[0] == before.outputs[0] else node.inputs[0]


def _number(t: Translation, name: str) -> float | None:
    """Return the value of a constant with one element, else None."""
    value = t.values.get(name)
    return float(value.real_values.reshape(-1)[0]) if isinstance(value, Constant) and value.values.size == 1 else None
