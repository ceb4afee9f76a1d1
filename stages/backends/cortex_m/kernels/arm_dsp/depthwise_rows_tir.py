"""TIR of depthwise convolution with 5 or 7 columns, in the loops of depthwise_tir.py."""

from typing import Any

from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic
from stages.backends.cortex_m.kernels.arm_dsp.depthwise_tir import channel_shape, over_planes, pixel
from stages.backends.cortex_m.kernels.arm_dsp.planes import ROW_FIELDS, result_word_count, row_plane
from stages.backends.cortex_m.kernels.arm_dsp.requantize_tir import requantize
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.words import half_word
from stages.ir.graph import LayerView


def depthwise(view: LayerView) -> Lowering:
    """Loop over images and channels around the block of one plane."""
    op, y, plane = view.op, view.outputs[0], row_plane(view)
    columns = op.kernel[1]
    row_words = columns - 1  # pairs that begin with an even tap, then those that begin with an odd one
    taps = op.kernel[0] * row_words
    words = taps + result_word_count(view)

    def meaning(b: Any) -> None:
        with loop(("row", plane.out_rows), ("column", plane.out_columns)) as (row, column):
            store(b.acc, b.channel[taps], 0)
            with loop(("ky", op.kernel[0])) as ky:
                first = (row * op.stride[0] + ky * op.dilation[0]) * plane.pitch + column
                for kx in range(columns):
                    word, half = (row_words - 1, 1) if kx == columns - 1 else (kx // 2, kx % 2)
                    weight = half_word(b.channel[ky * row_words + word], half)
                    store(b.acc, b.acc[0] + widen(b.plane[first + kx]) * weight, 0)
            scaled = requantize(b.acc[0], [b.channel[at] for at in range(taps + 1, words)], op.rounding)
            store(b.y, output(view, scaled), *pixel(y, row, column))

    fields = Operand("fields", ROW_FIELDS.shape, "int32")
    operands = (
        Operand("plane", (plane.elements,), "int16"),
        Operand("channel", (words,), "int32"),
        Operand("y", channel_shape(y), y.dtype, "w"),
        fields,
        accumulator(),
    )
    arguments = lambda b: [b.plane, b.channel, b.y, b.fields]  # noqa: E731
    function = f"arm_dsp_depthwise_rows{columns}" + ("_long" if arithmetic(view, long=True).scale.long else "")
    block = Block("plane", operands, meaning, function, arguments)
    return over_planes(view, plane, block, (Operand("channels", (op.out_channels, words), "int32"), fields))
