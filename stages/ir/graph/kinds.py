"""What rules can call the layers of the integer graph."""

from __future__ import annotations

from functools import cache

from stages.ir.operators.table import layers, outside


@cache
def _own() -> frozenset[str]:
    return frozenset().union(*(layer.names() for layer in layers()))


def kernel_kinds() -> frozenset[str]:
    """All that a layer for a kernel can be called in a rule: its operator in the graph, or its `Layer.kind`."""
    return _own() | outside().layers.keys()


def is_kernel_kind(name: str) -> bool:
    """Whether it is one of `kernel_kinds`. Plug-ins are imported for a name that is none of Firmline's own."""
    return name in _own() or name in outside().layers
