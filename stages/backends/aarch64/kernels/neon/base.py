"""Type and layout checks and output constants of the NEON kernels."""

from stages.backends.kernels.eight_bit import INT8_OFFSET, not_eight_bit, why_not_nhwc
from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

HALVES, SHIFTS, ONCE = range(3)  # MODE_ of neon_requantize.h


class NeonKernel(Kernel):
    """A kernel for A64, on 8-bit tensors of one type in NHWC."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or self.why_not_planar(view) or self.why_not_operator(view)

    def why_not_planar(self, view: LayerView) -> str:
        """Return why a tensor is not in NHWC order, '' if all are."""
        return why_not_nhwc(view)

    def why_not_operator(self, view: LayerView) -> str:
        """Return why the kernel cannot compute a layer of supported types and layouts, or ''."""
        return ""


def mode(view: LayerView) -> int:
    """Return the rounding mode of a layer with weights."""
    double = HALVES if view.constant("shift").max() < 0 else SHIFTS
    return ONCE if view.op.rounds_once else double


def output_constants(view: LayerView, zero_point: int | None = None) -> Array:
    """Return the output constants, int8 [64].

    16 bytes each: zero point (int16), lowest and highest value as int8, mask xored into each byte. `zero_point`
    replaces the operator's.
    """
    op, offset = view.op, INT8_OFFSET[view.outputs[0].dtype]
    own = op.output_zero_point if zero_point is None else zero_point
    start = np.full(8, own - offset, np.int16).view(np.int8)
    rest = [np.full(16, value, np.int8) for value in (op.act_min - offset, op.act_max - offset)]
    return np.concatenate([start, *rest, np.full(16, offset, np.uint8).view(np.int8)])
