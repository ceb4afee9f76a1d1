"""Names of layers of the integer graph in rules."""

from functools import cache

from stages.ir.operators.table import layers, plugin_operators


@cache
def _built_in() -> frozenset[str]:
    return frozenset().union(*(layer.names() for layer in layers()))


def kernel_kinds() -> frozenset[str]:
    """Return all names of kernel layers in rules: operators of the graph, and `Layer.kind`."""
    return _built_in() | plugin_operators().layers.keys()


def is_kernel_kind(name: str) -> bool:
    """Whether the name is one of `kernel_kinds`.

    Plug-ins are imported only for names that are not built in.
    """
    return name in _built_in() or name in plugin_operators().layers
