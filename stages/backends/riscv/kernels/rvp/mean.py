"""MEAN with neighbouring results, such as over the pixels of an image."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.means import means
from stages.backends.kernels.tir.strides import reduced_axes, two_axes
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

MEAN = Structure.of_header("rvp_mean", __file__, "mean.h")


class Mean(Kernel):
    """Mean of two registers of channels at a time.

    Bytes of two pixels are combined and added by a product. On RV64 pixels may also be whole half registers.
    """

    name = "rvp.mean_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mean"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("mean.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or _why_not_axes(view, target.word_bits // 8) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
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
        (kept, summed), form = reduced_axes(view), _form(view, target.word_bits // 8)
        function = f"rvp_mean_{form}{SUFFIX[view.inputs[0].dtype]}"
        return means(view, kept, two_axes(summed), function, MEAN.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 5 per input register, 50 per output register.

        For four bytes of two pixels: 8 and 115.
        """
        register, form = target.word_bits // 8, _form(view, target.word_bits // 8)
        run, outputs = reduced_axes(view)[0][-1].extent, view.outputs[0].elements
        if form == "quads_":
            return (8 * view.inputs[0].elements + 115 * outputs) / register + 150 * outputs / run
        return (5 * view.inputs[0].elements + 50 * outputs) / register + 80


def _form(view: LayerView, register: int) -> str | None:
    """Return how means are computed: '' in registers, `quads_` in half ones, None in neither."""
    kept, summed = reduced_axes(view)
    steps = [kept[-1].extent, *(axis.strides[-1] for axis in (*kept[:-1], *summed))]
    if all(step % register == 0 for step in steps):
        return ""
    return "quads_" if all(step % 4 == 0 for step in steps) else None


def _why_not_axes(view: LayerView, register: int) -> str:
    kept, summed = reduced_axes(view)
    if len(summed) > 2:
        return f"the summed axes are {len(summed)} runs in memory; the limit is 2"
    if kept[-1].strides != (1, 1):
        return "the means are not neighbours in memory"
    return "pixels are not multiples of four bytes" if _form(view, register) is None else ""


def _why_not_arithmetic(view: LayerView) -> str:
    """Return why the kernel's means could differ from the reference, '' if they cannot."""
    op = view.op
    if not -31 <= op.shift <= -1:
        return f"a shift of {op.shift} is not supported"
    largest = 255 * op.count
    if largest >= 1 << 31:
        return f"the sum of {op.count} elements does not fit 32 bits"
    if largest * op.multiplier >> (31 - op.shift) > 32000:
        return "means do not fit 16 bits"
    return ""
