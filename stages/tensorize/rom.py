"""What a kernel's bytes of ROM are worth, where a recipe wants little of it (stages.tensorize.objective)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stages.tensorize.costs import signature, variant

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Kernel
    from stages.targets.spec import Target


@dataclass(frozen=True)
class Rom:
    """rate      instructions that a byte is worth
    left_out  names of kernels that are taken only where no other can compute the layer, for their code
    """

    target: Target
    rate: float = 0.0
    left_out: frozenset[str] = frozenset()
    _known: dict[tuple[str, str, str], int] = field(default_factory=dict, repr=False, compare=False)

    def bytes_of(self, view: LayerView, kernel: Kernel, params: Any) -> int:
        """Bytes of the constants that the kernel packs for the layer."""
        if not kernel.lowers:
            return 0
        key = (view.layer.name, variant(kernel, params), signature(view))
        if key not in self._known:
            packed = kernel.pack_for(kernel.seen(view), params, self.target)
            self._known[key] = sum(array.nbytes for array in packed.values())
        return self._known[key]

    def worth(self, view: LayerView, kernel: Kernel, params: Any, cost: float) -> float:
        """Instructions of the layer, with those that its bytes are worth."""
        return cost + self.rate * self.bytes_of(view, kernel, params)
