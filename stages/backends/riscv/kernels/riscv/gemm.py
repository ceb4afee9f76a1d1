"""CONV_2D as a matrix product of six pixels at a time."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET, too_deep, weight_rows, weight_zero_point, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.structure import Structure
from stages.backends.riscv.kernels.riscv.gemm_cost import gemm_cost
from stages.backends.riscv.kernels.riscv.rectified import is_rectified
from stages.backends.riscv.kernels.riscv.rows import Rows
from stages.backends.riscv.kernels.riscv.windows import FIELDS as WINDOWS
from stages.backends.riscv.kernels.riscv.windows import fields_of, reads_in_place
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

FIELDS = Structure.of_header("riscv_gemm", __file__, "gemm.h")
# What the words of a tile may take of the arena, in bytes.
_MOST_PACKED = 16384


class Gemm(Kernel):
    """Convolution as the product of six windows and a weight panel.

    Both are packed into words, the windows straight from the image.

    Input and output may each be NHWC or NCHW. uint8 inputs become int8 in the words.
    """

    name = "riscv.gemm"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("gemm.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := why_not_types(view) or too_deep(depth_of(view)):
            return bad
        if weight_zero_point(view):
            return "the weights have a zero point; this kernel supports none"
        size = 4 * rows_of_words(view, target).words
        return f"a tile takes {size} bytes of scratch; the limit is {_MOST_PACKED}" if size > _MOST_PACKED else ""

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        from stages.backends.generic.kernels.generic import packing
        from stages.backends.riscv.kernels.riscv.panels import channels, panels

        op, x = view.op, view.inputs[0]
        flat = weight_rows(view, packing.signed_weights(view)[0])
        if x.layout == "NCHW":  # a window is gathered plane by plane
            flat = flat.reshape(op.out_channels, *op.kernel, -1).transpose(0, 3, 1, 2).reshape(op.out_channels, -1)
        words = rows_of_words(view, target)
        packed = packing.channels(view, flat, 0, op.input_zero_point - INT8_OFFSET[x.dtype])
        constants = {
            "weights": np.stack([panels(group, words) for group in np.split(flat, op.groups)]),
            "channels": np.stack([channels(group, words) for group in np.split(packed, op.groups)]),
            "gemm": FIELDS.of(_fields(view, words)),
        }
        if not reads_in_place(view):
            constants["windows"] = WINDOWS.of(fields_of(view))
        return constants

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.riscv.gemm_tir import conv2d

        return conv2d(view, rows_of_words(view, target), FIELDS.shape, WINDOWS.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return gemm_cost(view, rows_of_words(view, target))


def rows_of_words(view: LayerView, target: Target) -> Rows:
    """Return the layout of the layer's rows in words of the target."""
    return Rows(depth_of(view), target.word_bits)


def _fields(view: LayerView, words: Rows) -> dict[str, int]:
    op, out = view.op, view.outputs[0]
    planar = out.layout == "NCHW"
    return {
        "x_row": op.in_channels if reads_in_place(view) else words.row,
        "y_row": 1 if planar else op.out_channels,
        "y_column": out.shape[1] * out.shape[2] if planar else 1,
        "row": words.row,
        "depth": words.depth,
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
        "rectified": int(is_rectified(view)),
    }
