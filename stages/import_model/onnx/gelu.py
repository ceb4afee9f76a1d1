"""Fuse Gelu as exporters write it for old opsets: x * (1 + erf(x / sqrt(2))) / 2."""

from collections.abc import Iterator
from math import sqrt

import numpy as np
import onnx

from stages.import_model.onnx.translation import Node, Translation
from stages.import_model.onnx.values import Constant

_SCALING = ("Mul", "Div")


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
    added = t.only_reader(erf.outputs[0], "Add")
    if x is None or added is None or _number(t, _other(added, erf)) != 1.0:
        return None
    members, last, factor, x_factors = [scaled.index, erf.index, added.index], added, 1.0, 0
    while (following := t.only_reader(last.outputs[0], *_SCALING)) is not None:
        other = _other(following, last)
        constant_factor, producer = dict(_factors(t, following)).get(last.outputs[0]), producers.get(other)
        if constant_factor is not None:
            step, reads = constant_factor, 0
        elif following.op != "Mul":
            break
        elif other == x:
            step, reads = 1.0, 1
        elif producer is not None and t.only_reader(other) is following and _scaled(t, producer, 0.5) == x:
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
    value, constant_factor = next(_factors(t, node), (None, 0.0))
    return value if np.isclose(constant_factor, factor, rtol=1e-6) else None


def _factors(t: Translation, node: Node) -> Iterator[tuple[str, float]]:
    """Yield the input that `node` scales, and the factor: of c * x, x * c and x / c."""
    if node.op not in _SCALING or len(node.inputs) != 2:
        return
    (first, second), is_product = node.inputs, node.op == "Mul"
    by_first, by_second = _number(t, first), _number(t, second)
    if by_first and is_product:
        yield second, by_first
    if by_second:
        yield first, by_second if is_product else 1 / by_second


def _other(node: Node, before: Node) -> str:
    return node.inputs[1] if node.inputs[0] == before.outputs[0] else node.inputs[0]


def _number(t: Translation, name: str) -> float | None:
    """Return the value of a constant with one element, else None."""
    value = t.values.get(name)
    return float(value.real_values.reshape(-1)[0]) if isinstance(value, Constant) and value.values.size == 1 else None
