"""Warnings about float layers and their cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stages.ir.operators.conversions import Dequantize, Quantize
from stages.support.messages import escape
from stages.support.messages.wording import several

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.graph import Graph, Layer

_SHOWN = 4


def float_warnings(graph: Graph, soft: Mapping[int, float], target: Target) -> tuple[str, ...]:
    """Warn about float layers without a floating-point unit, or between integer layers.

    soft: instructions per inference on a core without floating-point unit, for each float layer by index.
    """
    layers = [layer for layer in graph.layers if layer.index in soft]
    if target.fpu:
        layers = _between_integers(graph, layers)
    if not layers:
        return ()
    count = "1 float layer" if len(layers) == 1 else f"{len(layers)} float layers"
    total = _rounded(sum(soft[layer.index] for layer in layers))
    costly = sorted(layers, key=lambda layer: -soft[layer.index])
    named = several([f"{escape.quoted(layer.name)} ({layer.kind})" for layer in costly], _SHOWN)
    if not target.fpu:
        what = f"{target.core} has no floating-point unit: {count} will take some {total} instructions per inference"
    else:
        what = f"{count} between integers: a core without floating-point unit takes some {total} instructions for them"
    return (f"{what}: {named}",)


def _between_integers(graph: Graph, layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers between a DEQUANTIZE and a float QUANTIZE."""
    behind: set[str] = set()
    for layer in graph.layers:
        is_behind = not isinstance(layer.op, Quantize) and behind.intersection(layer.inputs)
        if is_behind or isinstance(layer.op, Dequantize):
            behind.update(layer.outputs)
    before: set[str] = set()
    for layer in reversed(graph.layers):
        is_before = not isinstance(layer.op, Dequantize) and before.intersection(layer.outputs)
        if is_before or isinstance(layer.op, Quantize):
            before.update(layer.inputs)
    return [layer for layer in layers if behind.intersection(layer.inputs) and before.intersection(layer.outputs)]


def _rounded(cost: float) -> str:
    """Format a cost with two significant digits and thousands separators."""
    return f"{float(f'{cost:.2g}'):,.0f}"
