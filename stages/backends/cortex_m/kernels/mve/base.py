"""Type and layout checks and layer constants of the MVE kernels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.backends.cortex_m.kernels.mve.rounding import requantization
from stages.backends.kernels.eight_bit import INT8_OFFSET, Sums, not_eight_bit, sums, why_not_nhwc
from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.mve.rounding import Mode


class MveKernel(Kernel):
    """Kernel for Armv8.1-M integer vectors on 8-bit NHWC tensors of one type."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or why_not_nhwc(view) or self.why_not_operator(view)

    @abstractmethod
    def why_not_operator(self, view: LayerView) -> str:
        """Return why the kernel cannot compute a layer of 8-bit NHWC tensors, '' if it can."""


@dataclass(frozen=True)
class Arithmetic(Sums):
    """Sums of a layer and their requantization.

    mode    of rounding.py
    params  int32 [3, channels]: bias (modulo 2^32), multiplier, rounder
    """

    mode: Mode
    params: npt.NDArray[np.int32]


def arithmetic(view: LayerView, *, lowered: bool = False, shifted: bool = True) -> Arithmetic:
    """Return the constants of a layer with weights.

    `lowered` prefers the mode lowered, `shifted` permits the mode shifted. Activations reach the kernel as int8 (uint8
    minus 128). Raises ValueError if rounding.py has no exact mode.
    """
    layer_sums = sums(view, INT8_OFFSET[view.inputs[0].dtype])
    how = requantization(
        layer_sums.multiplier,
        layer_sums.shift,
        layer_sums.range.size,
        view.op.rounding,
        lowered=lowered,
        shifted=shifted,
    )
    params = np.stack([layer_sums.bias.astype(np.int32), layer_sums.multiplier, how.rounders])
    return Arithmetic(**vars(layer_sums), mode=how.mode, params=params)
