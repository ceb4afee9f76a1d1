"""What rules can call the layers of the integer graph."""

from __future__ import annotations

from stages.operators.table import LAYERS


def kernel_kinds() -> frozenset[str]:
    """All that a layer for a kernel can be called in a rule: its operator in the graph, or its `Layer.kind`."""
    return frozenset().union(*(layer.names() for layer in LAYERS))
