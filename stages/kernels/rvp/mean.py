"""MEAN whose results are neighbours, as over the pixels of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.kernels.kernel import Kernel
from stages.kernels.rvp.base import clip_word
from stages.kernels.structure import Structure
from stages.kernels.tir.strides import reduced_axes, two_axes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

MEAN = Structure("rvp_mean", ("rows", "row_step", "columns", "column_step", "offset", "multiplier", "rounder", "clip"))


class Mean(Kernel):
    """Two registers of channels at a time: bytes of two pixels are brought together and added by a product."""

    name = "rvp.mean_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"mean"})
    sources = ("mean.c",)
    headers: ClassVar[tuple[str, ...]] = ("mean.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or _why_not_axes(view, target.word_bits // 8) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        op, (rows, columns) = view.op, two_axes(reduced_axes(view)[1])
        fields = {
            "rows": rows.extent,
            "row_step": rows.strides[0],
            "columns": columns.extent,
            "column_step": columns.strides[0],
            "offset": op.input_zero_point * op.count,
            "multiplier": op.multiplier,
            "rounder": 1 << (31 + op.shift),
            "clip": clip_word(view),
        }
        return {"fields": MEAN.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.tir.means import means

        kept, summed = reduced_axes(view)
        function = f"rvp_mean_{SUFFIX[view.inputs[0].dtype]}"
        return means(view, kept, two_axes(summed), function, MEAN.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Of a register: 5 instructions for an input, 50 for an output."""
        register = target.word_bits // 8
        return (5 * view.inputs[0].elements + 50 * view.outputs[0].elements) / register + 80


def _why_not_axes(view: LayerView, register: int) -> str:
    kept, summed = reduced_axes(view)
    *around, run = kept
    if len(summed) > 2:
        return f"the axes are {len(summed)} runs in memory; this kernel sums 2"
    if run.strides != (1, 1) or run.extent % register:
        return f"the means are no registers of {register} neighbours"
    if any(step % register for axis in (*around, *summed) for step in axis.strides):
        return f"elements to be added begin at no multiple of {register}"
    return ""


def _why_not_arithmetic(view: LayerView) -> str:
    """Why the means of the kernel could differ from the reference's."""
    op = view.op
    if op.rounding != "double":
        return "rounds once"
    if not -31 <= op.shift <= -1:
        return f"a shift of {op.shift}"
    largest = 255 * op.count
    if largest >= 1 << 31:
        return f"{op.count} elements of a mean do not fit 32 bits"
    if largest * op.multiplier >> (31 - op.shift) > 32000:
        return "means do not fit 16 bits"
    return ""
