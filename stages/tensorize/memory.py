"""A bound on the arena, the recipe's or the least that an objective found: which kernels need too much scratch for it.

While a layer runs, the tensors alive then and its kernel's scratch are in the arena together, so their sum bounds the
arena from below. How much scratch that is only lowering shows; a kernel is lowered for it when it is about to be taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.lower.arena import Buffer, liveness
from stages.lower.arena.planner import lower_bound
from stages.support.messages import escape
from stages.tensorize.in_place import overlays

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Kernel
    from stages.ir.graph import Graph, LayerView
    from stages.tensorize.lowering import Lowerings


class ArenaBound:
    """Says for a graph whether a kernel keeps the arena within `limit` bytes.

    The limit is what the recipe says, unless it was `found` for `optimize_for: ram`. `name` is what messages call it,
    `at` the option that is to blame for it.
    """

    def __init__(self, graph: Graph, limit: int, lowerings: Lowerings, *, found: bool = False) -> None:
        self.name = f"{limit:,} bytes, found for optimize_for: ram" if found else "the recipe's arena_limit"
        self.at = ("stages", "tensorize", "optimize_for" if found else "arena_limit")
        self._graph = graph
        self._limit = limit
        self._lowerings = lowerings
        self._overlaid: frozenset[int] = frozenset()
        self._dearer: list[str] = []

    def taken(self, view: LayerView, kernel: Kernel, instead: str = "") -> None:
        """A layer has its kernel; whether that works in place decides what is alive at later layers.

        `instead` describes the change when the bound excluded the layer's cheapest: `b.gemm instead of a.gemm mr=4`.
        """
        if overlays(kernel, view):
            self._overlaid |= {view.layer.index}
        if instead:
            called = f"{view.layer.kind} {escape.name(view.layer.name)}"
            self._dearer.append(f"layer {view.layer.index} ({called}): {instead}")

    def warnings(self) -> tuple[str, ...]:
        """A sentence when layers did not get their cheapest kernel because of the bound; it shows the first."""
        if not self._dearer:
            return ()
        first = self._dearer[0]
        which = first if len(self._dearer) == 1 else f"{len(self._dearer)} layers, the first is {first}"
        return (f"arena_limit excludes the cheapest kernel of {which}",)

    def why_not(self, view: LayerView, kernel: Kernel, params: Any) -> str:
        """Why a kernel that can compute the layer brings the arena above the bound, '' when it does not."""
        scratch, tensors = self.needed(view, kernel, params)
        if tensors + scratch <= self._limit:
            return ""
        return f"{scratch:,} bytes of scratch and {tensors:,} of tensors exceed the arena's limit of {self._limit:,}"

    def needed(self, view: LayerView, kernel: Kernel, params: Any) -> tuple[int, int]:
        """Bytes of the kernel's scratch, and of what is alive beside it."""
        now = view.layer.index
        overlaid = self._overlaid | ({now} if kernel.overlays(view) else set())
        alive = [b for b in liveness(self._graph, may_overlay=overlaid).buffers if b.first <= now <= b.last]
        tensors = lower_bound([Buffer(b.name, b.bytes, now, now) for b in alive])
        (needed,) = self._lowerings.scratch([self._lowerings.of_kernel(view, kernel, params)])
        return sum(needed.values()), tensors
