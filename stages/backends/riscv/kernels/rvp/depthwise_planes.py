"""DEPTHWISE_CONV_2D tap by tap through planes of pixel registers."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import centred_weights, why_not_nhwc, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.riscv.kernels.rvp.base import arithmetic, one_rounding_of
from stages.backends.riscv.kernels.rvp.plane_layout import PLANES, Plane, fields
from stages.backends.riscv.kernels.rvp.strips import is_split, why_not_arithmetic
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class DepthwisePlanes(Kernel):
    """Depthwise convolution of any window, stride, dilation, multiplier and channel count.

    Computes 4 * lanes channels at a time. The cost depends on taps and outputs only, with little overhead: best for few
    taps and for small, dilated or strided images.
    """

    name = "rvp.depthwise_planes_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("depthwise_planes_s8.S", "depthwise_planes.c")
    headers: ClassVar[tuple[str, ...]] = ("depthwise_planes.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or why_not_nhwc(view) or why_not_arithmetic(view, any_shift=True)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        from stages.backends.riscv.kernels.rvp import packing

        constants = arithmetic(view, signed_activations=True, any_shift=True)
        plane = Plane.of(view, target.word_bits // 32)
        return {
            "params": packing.planes_params(
                _pairs(view, plane),
                constants.bias,
                constants.multiplier,
                constants.rounders,
                one_rounding_of(view, constants),
                target.word_bits,
                groups=plane.groups(view),
                has_single=plane.taps(view).has_single,
            ),
            "offsets": np.array(plane.offsets(view), np.int32),
            "planes": PLANES.of(fields(view, plane)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvp.depthwise_planes_tir import depthwise

        return depthwise(view, Plane.of(view, target.word_bits // 32))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return Plane.of(view, target.word_bits // 32).cost(view)


def _pairs(view: LayerView, plane: Plane) -> Array:
    """Return the weights of each tap pair and of a single tap: int64 [words, 2, channels]."""
    weights = centred_weights(view).astype(np.int64).T.reshape(*view.op.kernel, -1)
    if plane.exchanged:
        weights = weights.transpose(1, 0, 2)
    if is_split(view):
        addend = np.clip(weights, -128, 127)
        weights = np.concatenate((addend, weights - addend))
    taps = plane.taps(view)
    pairs = np.zeros((taps.words, 2, weights.shape[2]), np.int64)
    for row, column in np.ndindex(*weights.shape[:2]):
        pairs[taps.place(row, column)] = weights[row, column]
    return pairs
