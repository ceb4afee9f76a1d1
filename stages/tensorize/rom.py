"""The price of ROM bytes of a layer's constants (stages.tensorize.objective)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.tensorize.costs import signature, variant
from stages.tensorize.narrow import saved, widened_bytes


@dataclass(frozen=True)
class ConstantStorage:
    """A way to store a layer's constants in ROM.

    bytes         ROM bytes, including code that unpacks them
    instructions  to unpack them
    scratch       bytes of RAM by name for unpacked constants; empty if none are packed
    """

    bytes: int
    instructions: float = 0.0
    scratch: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Rom:
    """The price of ROM.

    rate    instructions that a byte is worth
    narrow  whether to pack constants of few bits (stages.tensorize.narrow); None: if that is worth it
    wide    names of layers that must not be packed, to save RAM (stages.tensorize.packed_weights)
    """

    target: Target
    rate: float = 0.0
    narrow: bool | None = None
    wide: frozenset[str] = frozenset()
    _cache: dict[tuple[str, str, str], tuple[ConstantStorage, ConstantStorage | None]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def variants(self, view: LayerView, kernel: Kernel, params: Any) -> tuple[ConstantStorage, ...]:
        """Return the ways to store the kernel's constants for the layer; unpacked first."""
        plain, packed = self._storages(view, kernel, params)
        if packed is None or self.narrow is False:
            return (plain,)
        if self.narrow:
            return (packed,)
        return (plain,) if view.layer.name in self.wide or packed.bytes >= plain.bytes else (plain, packed)

    def storage(self, view: LayerView, kernel: Kernel, params: Any) -> ConstantStorage:
        """Return the storage with the best price. Prices assume it, and constants are packed so."""
        return min(
            self.variants(view, kernel, params), key=lambda variant: variant.instructions + self.rate * variant.bytes
        )

    def worth(self, view: LayerView, kernel: Kernel, params: Any, cost: float) -> float:
        """Return the layer's instructions plus the price of its bytes."""
        kept = self.storage(view, kernel, params)
        return cost + kept.instructions + self.rate * kept.bytes

    def _storages(self, view: LayerView, kernel: Kernel, params: Any) -> tuple[ConstantStorage, ConstantStorage | None]:
        if not kernel.lowers:
            return ConstantStorage(0), None
        key = (view.layer.name, variant(kernel, params), signature(view))
        if key not in self._cache:
            packed = kernel.pack_for(kernel.seen(view), params, self.target)
            plain = ConstantStorage(sum(array.nbytes for array in packed.values()))
            scratch, (less, instructions) = widened_bytes(packed), saved(packed)
            self._cache[key] = plain, ConstantStorage(plain.bytes - less, instructions, scratch) if scratch else None
        return self._cache[key]
