"""A bound on the arena: which kernels need too much scratch.

While a layer runs, its live tensors and its kernel's scratch are in the arena together, so their sum is a lower bound
of the arena.
"""

from typing import Any

from stages.backends.kernels.kernel import Kernel
from stages.ir.graph import Graph, LayerView
from stages.lower.arena import Buffer, liveness
from stages.lower.arena.planner import lower_bound
from stages.support.messages import escape
from stages.tensorize.in_place import overlays
from stages.tensorize.lowering import Lowerings


class ArenaBound:
    """Checks whether a kernel keeps the arena of a graph within `limit` bytes."""

    def __init__(self, graph: Graph, limit: int, lowerings: Lowerings) -> None:
        self.limit = limit
        self._graph = graph
        self._lowerings = lowerings
        self._overlaid: frozenset[int] = frozenset()
        self._dearer: list[str] = []

    def assign(self, view: LayerView, kernel: Kernel, instead: str = "") -> None:
        """Record a layer's kernel.

        Working in place changes which buffers are alive at later layers.
        `instead` describes the change if the bound excluded the layer's cheapest kernel: `b.gemm instead of a.gemm
        mr=4`.
        """
        if overlays(kernel, view):
            self._overlaid |= {view.layer.index}
        if instead:
            called = f"{view.layer.kind} {escape.name(view.layer.name)}"
            self._dearer.append(f"layer {view.layer.index} ({called}): {instead}")

    def warnings(self) -> tuple[str, ...]:
        """Return a warning if the bound excluded the cheapest kernel of layers. It shows the first."""
        if not self._dearer:
            return ()
        first = self._dearer[0]
        which = first if len(self._dearer) == 1 else f"{len(self._dearer)} layers, the first is {first}"
        return (f"arena_limit excludes the cheapest kernel of {which}",)

    def why_not(self, view: LayerView, kernel: Kernel, params: Any) -> str:
        """Return why a kernel exceeds the bound, '' if it does not."""
        scratch, tensors = self.needed(view, kernel, params)
        if tensors + scratch <= self.limit:
            return ""
        return f"{scratch:,} bytes of scratch and {tensors:,} of tensors exceed the arena's limit of {self.limit:,}"

    def needed(self, view: LayerView, kernel: Kernel, params: Any) -> tuple[int, int]:
        """Return the bytes of the kernel's scratch and of the tensors that are alive with it."""
        now = view.layer.index
        overlaid = self._overlaid | ({now} if overlays(kernel, view) else set())
        alive = [b for b in liveness(self._graph, may_overlay=overlaid).buffers if b.first <= now <= b.last]
        tensors = lower_bound([Buffer(b.name, b.bytes, now, now) for b in alive])
        return sum(self._lowerings.declared_scratch(view, kernel, params).values()), tensors
