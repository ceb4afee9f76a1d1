"""MEAN over the pixels of images."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.means import means
from stages.backends.kernels.tir.strides import Axis, reduced_axes
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

FIELDS = Structure.of_header("arm_dsp_mean", __file__, "mean.h")
MAX_COLUMNS = 255  # that are added in 16 bits


class Mean(Kernel):
    """Mean of four neighbouring channels at a time, or of neighbouring pixels.

    The second form is used if the last axis is averaged.
    """

    name = "arm_dsp.mean_s8"
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"mean"})
    sources = ("mean.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        bad = not_eight_bit(view)
        return bad or ("" if kind(view) else "neither the means nor their elements are neighbours in memory")

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        rows, columns = pixels(reduced_axes(view)[1])
        fields = {
            "rows": rows.extent,
            "row_step": rows.strides[0],
            "columns": columns.extent,
            "column_step": columns.strides[0],
            "offset": op.input_zero_point * op.count,
            "multiplier": op.multiplier,
            "shift": op.shift,
            "single_rounding": int(op.rounds_once),
            "zero_point": op.output_zero_point,
            "low": op.act_min,
            "high": op.act_max,
        }
        return {"fields": FIELDS.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        kept, summed = reduced_axes(view)
        function = f"arm_dsp_mean_{kind(view)}_{SUFFIX[view.inputs[0].dtype]}"
        return means(view, kept, pixels(summed), function, FIELDS.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        A block of 16 means takes 540 and 15.5 per pixel; 4 means 200 and 6, with 40 per row; a single mean 105 and 5.
        Planes take 6.5 per four elements and 45 per remaining element.
        """
        kept, summed = reduced_axes(view)
        (rows, columns), count, run = pixels(summed), view.op.count, kept[-1].extent
        if kind(view) == "planes":
            return view.outputs[0].elements * (count // 4 * 6.5 + count % 4 * 45.0) + 40
        blocks = run // 16 if rows.extent * columns.extent <= MAX_COLUMNS else 0
        left = run - 16 * blocks
        group_cost = blocks * (540 + 15.5 * count)
        group_cost += left * (105 + 5.0 * count) if run < 4 else -(-left // 4) * (200 + 40 * rows.extent + 5.9 * count)
        return view.outputs[0].elements / run * group_cost + 40


def kind(view: LayerView) -> str:
    """Return how the elements of a mean lie in memory.

    rows    means and their elements are neighbours
    planes  only the elements of a mean are neighbours
    ''      neither

    Means of single elements are rows, which are faster.
    """
    kept, summed = reduced_axes(view)
    run, is_single = kept[-1], view.op.count == 1
    if (
        not is_single
        and len(summed) == 1
        and summed[0].strides == (1,)
        and run.strides[0] == 1
        and run.strides[1] == summed[0].extent
    ):
        return "planes"
    few = len(summed) <= 2 and pixels(summed)[1].extent <= MAX_COLUMNS
    return "rows" if run.strides == (1, 1) and few else ""


def pixels(added: list[Axis]) -> tuple[Axis, Axis]:
    """Rows and columns of one or two axes.

    An axis too long for 16 bits is split into the longest rows that fit.
    """
    columns = added[-1]
    if len(added) > 1:
        return added[0], columns
    length = max(n for n in range(1, MAX_COLUMNS + 1) if columns.extent % n == 0)
    step = columns.strides[0]
    return Axis(columns.extent // length, (length * step,)), Axis(length, (step,))
