"""Layers whose output may overlay an input that nothing reads afterwards."""

from collections.abc import Iterable
from dataclasses import replace

from stages.backends.kernels.kernel import Kernel
from stages.ir.graph import Graph, LayerView


def overlays(kernel: Kernel, view: LayerView) -> bool:
    """Return `Kernel.overlays` for the layer as the kernel sees it."""
    return kernel.overlays(kernel.seen(view))


def overlays_band(kernel: Kernel, view: LayerView) -> bool:
    """Return whether a band's output may overlay the first rows of its input.

    The input has more rows. It may if an image with padding above and below may: there each result is a row nearer to
    the rows still needed.
    """
    x, y = view.inputs[0], view.outputs[0]
    if len(x.shape) == 4 == len(y.shape) and x.shape[1] > y.shape[1]:
        shape = (x.shape[0], y.shape[1], *x.shape[2:])
        view = replace(view, tensors={**view.tensors, x.name: x.model_copy(update={"shape": shape})})
    return overlays(kernel, view)


def overlaid(graph: Graph, kernels: Iterable[tuple[int, Kernel]]) -> frozenset[int]:
    """Return the indices of layers whose kernels may overlay an input by the output."""
    return frozenset(index for index, kernel in kernels if overlays(kernel, graph.view(graph.layers[index])))
