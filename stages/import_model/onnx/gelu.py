"""Gelu as exporters write it where the opset lacks it: x * (1 + erf(x / sqrt(2))) / 2, in any order of the products."""

from __future__ import annotations

from math import sqrt

import numpy as np
import onnx

from stages.import_model.onnx.translation import Node, Translation
from stages.import_model.onnx.values import Stored


def fuse_gelus(t: Translation) -> None:
    """Puts one Gelu in place of the last operator of each such product; the others are done."""
    makers = {name: node for node in t.nodes for name in node.outputs}
    for node in t.nodes:
        found = _matched(t, node, makers) if node.op == "Erf" else None
        if found is None:
            continue
        x, last, passed = found
        proto = onnx.helper.make_node("Gelu", [x], [last.outputs[0]], name=last.proto.name)
        t.nodes[last.index] = Node(last.index, proto, tuple(t.nodes[index] for index in sorted(passed)))
        t.done |= {*passed} - {last.index}


def _matched(t: Translation, erf: Node, makers: dict[str, Node]) -> tuple[str, Node, list[int]] | None:
    """What Gelu reads, the operator that gives its result, and all that it stands for."""
    scaled = makers.get(erf.inputs[0])
    if scaled is None or t.only_reader(scaled.outputs[0]) is not erf:
        return None
    x = _scaled(t, scaled, 1 / sqrt(2))
    added = t.only_reader(erf.outputs[0])
    if x is None or added is None or added.op != "Add" or _number(t, _other(added, erf)) != 1.0:
        return None
    passed, last, factor, times = [scaled.index, erf.index, added.index], added, 1.0, 0
    while (after := t.only_reader(last.outputs[0])) is not None and after.op in ("Mul", "Div"):
        other = _other(after, last)
        number, maker = _number(t, other), makers.get(other)
        if number is not None and (after.op == "Mul" or after.inputs[0] == last.outputs[0]):
            step, reads = number if after.op == "Mul" else 1 / number, 0
        elif after.op == "Mul" and other == x:
            step, reads = 1.0, 1
        elif after.op == "Mul" and maker is not None and t.only_reader(other) is after and _scaled(t, maker, 0.5) == x:
            step, reads = 0.5, 1
            passed.append(maker.index)
        else:
            break
        passed.append(after.index)
        last, factor, times = after, factor * step, times + reads
        if (times, factor) == (1, 0.5):
            return x, last, passed
    return None


def _scaled(t: Translation, node: Node, factor: float) -> str | None:
    """What `node` multiplies by this factor, or divides by its inverse; None for anything else."""
    if node.op not in ("Mul", "Div") or len(node.inputs) != 2:
        return None
    for at in (0, 1):
        number = _number(t, node.inputs[at])
        if number and (node.op == "Mul" or at == 1):
            given = number if node.op == "Mul" else 1 / number
            return node.inputs[1 - at] if np.isclose(given, factor, rtol=1e-6) else None
    return None


def _other(node: Node, before: Node) -> str:
    return node.inputs[1] if node.inputs[0] == before.outputs[0] else node.inputs[0]


def _number(t: Translation, name: str) -> float | None:
    """The one number that a constant is; None for others."""
    value = t.values.get(name)
    return float(value.real.reshape(-1)[0]) if isinstance(value, Stored) and value.values.size == 1 else None
