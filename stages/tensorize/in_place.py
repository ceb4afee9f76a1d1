"""Layers whose output may overlay an input that nothing reads afterwards."""

from __future__ import annotations

from collections.abc import Iterable

from stages.backends.kernels.kernel import Kernel
from stages.ir.graph import Graph, LayerView


def overlays(kernel: Kernel, view: LayerView) -> bool:
    """Return `Kernel.overlays` for the layer as the kernel sees it."""
    return kernel.overlays(kernel.seen(view))


def overlaid(graph: Graph, kernels: Iterable[tuple[int, Kernel]]) -> frozenset[int]:
    """Return the indices of layers whose kernels may overlay an input by the output."""
    return frozenset(index for index, kernel in kernels if overlays(kernel, graph.view(graph.layers[index])))
