"""What the bytes of a layer's constants are worth, where a recipe wants little of it (stages.tensorize.objective)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stages.tensorize.costs import signature, variant
from stages.tensorize.narrow import saved, widened_bytes

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Kernel
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


@dataclass(frozen=True)
class ConstantStorage:
    """A way to keep a layer's constants in ROM.

    bytes         of ROM, with the code that widens them
    instructions  that it takes to widen them
    scratch       bytes of RAM by name while the layer runs, of those of few bits; none where all keep whole bytes
    """

    bytes: int
    instructions: float = 0.0
    scratch: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Rom:
    """rate    instructions that a byte is worth
    narrow  whether constants of few bits are kept so (stages.tensorize.narrow); None: where that is worth it
    wide    names of layers that keep whole bytes then, for the sake of RAM (stages.tensorize.packed_weights)
    """

    target: Target
    rate: float = 0.0
    narrow: bool | None = None
    wide: frozenset[str] = frozenset()
    _known: dict[tuple[str, str, str], tuple[ConstantStorage, ConstantStorage | None]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def variants(self, view: LayerView, kernel: Kernel, params: Any) -> tuple[ConstantStorage, ...]:
        """How the constants that the kernel packs for the layer may be kept; whole bytes first."""
        whole, few = self._both(view, kernel, params)
        if few is None or self.narrow is False:
            return (whole,)
        if self.narrow:
            return (few,)
        return (whole,) if view.layer.name in self.wide or few.bytes >= whole.bytes else (whole, few)

    def storage(self, view: LayerView, kernel: Kernel, params: Any) -> ConstantStorage:
        """The way that is worth most: prices have it, and constants are packed so."""
        return min(self.variants(view, kernel, params), key=lambda way: way.instructions + self.rate * way.bytes)

    def worth(self, view: LayerView, kernel: Kernel, params: Any, cost: float) -> float:
        """Instructions of the layer, with those that its bytes are worth."""
        kept = self.storage(view, kernel, params)
        return cost + kept.instructions + self.rate * kept.bytes

    def _both(self, view: LayerView, kernel: Kernel, params: Any) -> tuple[ConstantStorage, ConstantStorage | None]:
        if not kernel.lowers:
            return ConstantStorage(0), None
        key = (view.layer.name, variant(kernel, params), signature(view))
        if key not in self._known:
            packed = kernel.pack_for(kernel.seen(view), params, self.target)
            whole = ConstantStorage(sum(array.nbytes for array in packed.values()))
            scratch, (less, instructions) = widened_bytes(packed), saved(packed)
            self._known[key] = whole, ConstantStorage(whole.bytes - less, instructions, scratch) if scratch else None
        return self._known[key]
