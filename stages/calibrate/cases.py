"""What to measure: every layer that occurs, once for each signature, with every kernel that is worth it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.kernels import registry
from stages.tensorize.build import renames_only
from stages.tensorize.costs import estimated, signature, variant

if TYPE_CHECKING:
    from stages.graph import Graph, LayerView
    from stages.kernels.kernel import Kernel, KernelParams
    from stages.targets.spec import Target

# A kernel is not measured on a layer that takes it this many instructions, if another estimates a quarter of that.
_LONG = 10_000_000
_HOPELESS = 4


@dataclass(frozen=True)
class Case:
    """One measurement: a layer, a kernel that can compute it, the kernel's parameters."""

    view: LayerView
    kernel: Kernel
    params: KernelParams
    signature: str
    variant: str
    estimate: float | None


def cases(graphs: Iterable[Graph], target: Target) -> list[Case]:
    """The measurements for all layers of the graphs, in their order; layers without code and float layers have none."""
    kernels = list(registry.kernels(target.kernels).values())
    found: dict[tuple[str, str], Case] = {}
    for graph in graphs:
        for layer in graph.layers:
            if layer.op.op == "float" or renames_only(graph, layer):
                continue
            for case in _of_layer(graph.view(layer), kernels, target):
                found.setdefault((case.signature, case.variant), case)
    return list(found.values())


def _of_layer(view: LayerView, kernels: Iterable[Kernel], target: Target) -> Iterator[Case]:
    text = signature(view)
    able = [kernel for kernel in kernels if view.op.op in kernel.ops and not kernel.why_not(view, target)]
    made = [
        Case(view, kernel, params, text, variant(kernel, params), estimated(kernel, view, params, target))
        for kernel in able
        for params in kernel.candidates(view, target)
    ]
    least = min((case.estimate for case in made if case.estimate is not None), default=0.0)
    for case in made:
        long = case.estimate is not None and case.estimate > _LONG
        if not (long and case.estimate is not None and case.estimate > _HOPELESS * least):
            yield case
