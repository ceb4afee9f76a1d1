"""What the rvp kernels share: the target they need, the checks of types, and a layer's arithmetic as they want it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.kernels.kernel import Kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.graph import LayerView
    from stages.kernels.rvp.packing import Rounders
    from stages.targets.spec import Target

DRAFT = "0.9.11"
INT8_OFFSET = {"int8": 0, "uint8": 128}  # what is subtracted to make a value of the type an int8


class RvpKernel(Kernel):
    """A kernel that needs the P extension in this draft."""

    def why_not(self, view: LayerView, target: Target) -> str:
        if target.extensions.get("rvp") != DRAFT:
            return f"needs the P extension, draft {DRAFT}"
        return self.why_not_layer(view, target)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        """The reason the kernel cannot compute the layer on a target that has the extension, '' when it can."""
        raise NotImplementedError


def not_eight_bit(view: LayerView, *, weights: bool = True) -> str:
    """Why the layer is not on 8-bit tensors of one type (`weights`: with constant 8-bit weights), '' if it is."""
    tensors = (*view.inputs, *view.outputs)
    for tensor in tensors:
        if tensor.dtype not in INT8_OFFSET:
            return f"tensor {tensor.name} is {tensor.dtype}; this kernel is for int8 and uint8"
    if len({tensor.dtype for tensor in tensors}) > 1:
        return "int8 and uint8 tensors in one layer"
    if not weights:
        return ""
    if not view.has("weights"):
        return "the weights are not constant"
    dtype = str(view.constant("weights").dtype)
    return "" if dtype in INT8_OFFSET else f"weights are {dtype}, not int8 or uint8"


@dataclass(frozen=True)
class Arithmetic:
    """weights are int8 values [channels, depth] in int64; bias has all that zero points add to an accumulator."""

    weights: NDArray[np.int64]
    weight_zero_point: int
    bias: NDArray[np.int64]
    multiplier: NDArray[np.int32]
    rounders: Rounders


def arithmetic(view: LayerView, weights: NDArray[np.int64], *, signed_activations: bool) -> Arithmetic:
    """The constants of a convolution or fully connected layer; `weights` are the layer's own values, [channels, depth].

    `signed_activations`: uint8 activations reach the kernel as int8 (minus 128). Raises ValueError for a shift that the
    kernels do not take.
    """
    import numpy as np

    from stages.kernels.rvp import packing

    op, dtype = view.op, view.inputs[0].dtype
    channels = weights.shape[0]
    bias = view.constant("bias").astype(np.int64).reshape(-1) if view.has("bias") else np.zeros(channels, np.int64)
    multiplier, shift = (np.broadcast_to(view.constant(r).reshape(-1), (channels,)) for r in ("multiplier", "shift"))
    bounds = np.iinfo(dtype)
    centred = weights - op.weight_zero_point
    acc = packing.accumulator_range(
        centred, bias, int(bounds.min) - op.input_zero_point, int(bounds.max) - op.input_zero_point
    )
    round_ = packing.rounders_once if op.rounding == "single" else packing.rounders
    offset = INT8_OFFSET[str(view.constant("weights").dtype)]
    zero_point = op.input_zero_point - (INT8_OFFSET[dtype] if signed_activations else 0)
    folded = bias - zero_point * centred.sum(1)
    return Arithmetic(
        weights - offset, op.weight_zero_point - offset, folded, multiplier, round_(multiplier, shift, acc)
    )


def clip_word(view: LayerView) -> int:
    """The layer's output zero point and bounds as the kernels' clip argument."""
    from stages.kernels.rvp import packing

    op, unsigned = view.op, view.outputs[0].dtype == "uint8"
    return packing.clip_word(op.output_zero_point, op.act_min, op.act_max, unsigned=unsigned)
