"""DEPTHWISE_CONV_2D on NHWC images: the lanes of a vector are channels, of one pixel or of neighbours."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.eight_bit import why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel
from stages.backends.riscv.kernels.rvv.depthwise_lines import FIELDS, arithmetic, fields, lines_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.kernels.kernel import Lowering
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class Depthwise(Kernel):
    """Depthwise convolution with any window, stride, dilation and depth multiplier.

    3x3 windows have code of their own; with strides 1 and 2 neighbours share columns.
    """

    name = "rvv.depthwise_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    sources = ("depthwise.S",)
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := why_not_types(view) or why_not_nhwc(view):
            return bad
        lines = lines_of(view, target.vlen)
        if view.op.depth_multiplier > lines.most_loaded:
            return f"a depth multiplier of {view.op.depth_multiplier}; this kernel supports {lines.most_loaded}"
        return why_not_sums(prod(view.op.kernel), lambda: arithmetic(view))

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        import numpy as np

        constants, lines = arithmetic(view), lines_of(view, target.vlen)
        return {
            "weights": lines.by_groups(constants.weights).astype(np.int16),
            "channels": lines.by_groups(constants.params),
            "columns": np.array(lines.columns, np.int32),
            "fields": FIELDS.of(fields(view, lines)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvv.depthwise_tir import depthwise

        return depthwise(view, lines_of(view, target.vlen), arithmetic(view).mode, target.word_bits)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return float(view.inputs[0].shape[0] * lines_of(view, target.vlen).cost())
