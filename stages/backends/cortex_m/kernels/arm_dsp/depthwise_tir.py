"""TIR of depthwise 3x3.

fill   plane <- zero point                                      arm_dsp_fill
for n in images, c in channels:
  widen  plane[top + row, left + column] <- x[row, column]      arm_dsp_widen_*
  plane  y <- requantize(bias + plane * taps)                   arm_dsp_depthwise3x3_*

Bands of few rows are read as they are, by one block:

  bytes  y <- requantize(bias + x * taps)                       arm_dsp_depthwise3x3_bytes_*
  band   the same for all channels of an NHWC image             arm_dsp_depthwise_band_*
"""

from itertools import product
from typing import Any

from stages.backends.cortex_m.kernels.arm_dsp import band
from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic
from stages.backends.cortex_m.kernels.arm_dsp.planes import (
    BYTES_FIELDS,
    FIELDS,
    WIDEN,
    Plane,
    channel_steps,
    clamped,
    is_wide,
    plane_of,
    reads_bytes,
    result_word_count,
    widen_function,
)
from stages.backends.cortex_m.kernels.arm_dsp.requantize_tir import requantize
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, select, widen
from stages.backends.kernels.tir.words import byte, half_word
from stages.ir.graph import LayerView, Tensor
from stages.support.lazy import T


def channel_shape(tensor: Tensor) -> tuple[int, ...]:
    """Return one channel of an image as a region of its buffer."""
    _, height, width, _ = tensor.shape
    return {"NCHW": (height, width), "NHCW": (height, 1, width)}.get(tensor.layout, (height, width, 1))


def pixel(tensor: Tensor, row: Any, column: Any) -> tuple[Any, ...]:
    """Return the indices of a channel's element."""
    return {"NCHW": (row, column), "NHCW": (row, 0, column)}.get(tensor.layout, (row, column, 0))


def fill(view: LayerView, plane: Plane) -> Block:
    """Fill the whole plane with padding."""
    elements = plane.elements
    value = view.op.input_zero_point - INT8_OFFSET[view.inputs[0].dtype]

    def meaning(b: Any) -> None:
        with loop(("i", elements)) as i:
            store(b.plane, T.int16(value), i)

    operands = (Operand("plane", (elements,), "int16", "w"),)
    return Block("fill", operands, meaning, "arm_dsp_fill", lambda b: [b.plane, elements, value])


def widened(view: LayerView, plane: Plane) -> Block:
    """Copy a channel of the image into the plane."""
    x = view.inputs[0]
    offset = INT8_OFFSET[x.dtype]

    def meaning(b: Any) -> None:
        with loop(("row", plane.in_rows), ("column", plane.in_columns)) as (row, column):
            at = (column, row) if plane.swapped else (row, column)
            value = widen(b.x[pixel(x, *at)]) - offset if offset else widen(b.x[pixel(x, *at)])
            store(b.plane, T.Cast("int16", value), (row + plane.top) * plane.pitch + column + plane.left)

    operands = (
        Operand("x", channel_shape(x), x.dtype),
        Operand("widen", WIDEN.shape, "int32"),
        Operand("plane", (plane.elements,), "int16", "w"),
    )
    return Block("widen", operands, meaning, widen_function(view, plane), lambda b: [b.plane, b.x, b.widen])


def channel_words(view: LayerView) -> int:
    """Words of a channel: its taps and its result constants."""
    return tap_word_count(view) + result_word_count(view)


def tap_word_count(view: LayerView) -> int:
    """Return the words of a channel's taps."""
    return 6 if is_wide(view) else 3


def _wide_tap(b: Any, stride: int, ky: int, kx: int) -> Any:
    """Return a tap of six words.

    With stride 1 a row has pairs 0, 1 and 1, 2; otherwise third taps form pairs.
    """
    if kx < 2:
        return half_word(b.channel[2 * ky], kx)
    return half_word(b.channel[2 * ky + 1], 1) if stride == 1 else half_word(b.channel[ky // 2 * 2 + 1], ky % 2)


def _plane(view: LayerView) -> Block:
    op, y, plane = view.op, view.outputs[0], plane_of(view)
    stride, words, taps = op.stride[0], channel_words(view), tap_word_count(view)

    def meaning(b: Any) -> None:
        with loop(("row", plane.out_rows), ("column", plane.out_columns)) as (row, column):

            def element(ky: Any, kx: Any) -> Any:
                return widen(b.plane[(row * stride + ky) * plane.pitch + column * stride + kx])

            store(b.acc, b.channel[taps], 0)
            if is_wide(view):
                for ky, kx in product(range(3), range(3)):
                    store(b.acc, b.acc[0] + element(ky, kx) * _wide_tap(b, stride, ky, kx), 0)
            else:
                with loop(("ky", 3), ("kx", 3)) as (ky, kx):
                    store(b.acc, b.acc[0] + element(ky, kx) * byte(b.channel[ky], kx), 0)
            scaled = requantize(b.acc[0], [b.channel[at] for at in range(taps + 1, words)], op.rounding)
            store(b.y, output(view, scaled), *pixel(y, *((column, row) if plane.swapped else (row, column))))

    operands = (
        Operand("plane", (plane.elements,), "int16"),
        Operand("channel", (words,), "int32"),
        Operand("y", channel_shape(y), y.dtype, "w"),
        Operand("fields", FIELDS.shape, "int32"),
        accumulator(),
    )
    kind = "_wide" if is_wide(view) else "_clamped" if clamped(view) else ""
    suffix = plane.order + kind
    suffix += "_long" if arithmetic(view, long=True).scale.long else ""
    function = f"arm_dsp_depthwise3x3_s{stride}_{suffix}"
    return Block("plane", operands, meaning, function, lambda b: [b.plane, b.channel, b.y, b.fields])


def _bytes(view: LayerView) -> Block:
    """Compute one channel of a band from its bytes. Columns beside the image are padding."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    stride, words, taps = op.stride[0], channel_words(view), tap_word_count(view)
    _, rows, columns, _ = y.shape

    def meaning(b: Any) -> None:
        with loop(("row", rows), ("column", columns)) as (row, column):
            store(b.acc, b.channel[taps], 0)
            with loop(("ky", 3), ("kx", 3)) as (ky, kx):
                at = column * stride + kx - op.padding[1]
                is_inside = T.And(at >= 0, at < x.shape[2])
                element = select(is_inside, widen(b.x[pixel(x, row * stride + ky, at)]), op.input_zero_point)
                store(b.acc, b.acc[0] + element * byte(b.channel[ky], kx), 0)
            scaled = requantize(b.acc[0], [b.channel[at] for at in range(taps + 1, words)], op.rounding)
            store(b.y, output(view, scaled), *pixel(y, row, column))

    operands = (
        Operand("x", channel_shape(x), x.dtype),
        Operand("channel", (words,), "int32"),
        Operand("y", channel_shape(y), y.dtype, "w"),
        Operand("fields", BYTES_FIELDS.shape, "int32"),
        accumulator(),
    )
    suffix = ("rows" if channel_steps(y, False)[1] == 1 else "apart") + ("_clamped" if clamped(view) else "")
    suffix += "_long" if arithmetic(view, long=True).scale.long else ""
    function = f"arm_dsp_depthwise3x3_bytes_s{stride}_{suffix}"
    return Block("bytes", operands, meaning, function, lambda b: [b.x, b.channel, b.y, b.fields])


def _over_rows(view: LayerView) -> Lowering:
    """Loop over images and channels around the block of a channel's bytes."""
    x, y = view.inputs[0], view.outputs[0]
    block = _bytes(view)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.physical_shape, x.dtype)
        channels = f.constant("channels", (view.op.out_channels, channel_words(view)), "int32")
        fields = f.constant("fields", BYTES_FIELDS.shape, "int32")
        out = f.output(0, y.physical_shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        with f.loop(("n", y.shape[0]), ("c", view.op.out_channels)) as (n, c):
            regions = {"x": region(image, x, n, c), "y": region(out, y, n, c)}
            f.place(block, channel=(channels, c, 0), fields=fields, acc=acc, **regions)
    return f.lowering()


def _band(view: LayerView) -> Lowering:
    """Compute a band of an NHWC image by one block per image, with columns of padding."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, rows, columns, count = y.shape
    words, packed = channel_words(view), (columns + 2) * band.column_words(view)

    def meaning(b: Any) -> None:
        with loop(("c", count), ("row", rows), ("column", columns)) as (c, row, column):
            store(b.acc, b.channels[c, 3], 0)
            for ky, kx in product(range(3), range(3)):
                at = column + kx - 1
                is_inside = T.And(at >= 0, at < columns)
                element = select(is_inside, widen(b.x[row + ky, at, c]), op.input_zero_point)
                store(b.acc, b.acc[0] + element * byte(b.channels[c, kx], ky + ky // 2), 0)
            scaled = requantize(b.acc[0], [b.channels[c, at] for at in range(4, words)], op.rounding)
            store(b.y, output(view, scaled), row, column, c)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("channels", (count, words), "int32"),
        Operand("fields", band.FIELDS.shape, "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("columns", (packed,), "int32", "w"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.channels, b.y, b.columns, b.fields]  # noqa: E731
    block = Block("band", operands, meaning, band.function(view), arguments)
    with Function("depthwise_conv2d") as f:
        image, out = f.input(0, x.shape, x.dtype), f.output(0, y.shape, y.dtype)
        given = {operand.name: f.constant(operand.name, operand.shape, operand.dtype) for operand in operands[1:3]}
        given |= {"columns": f.scratch("columns", (packed,), "int32"), "acc": f.scratch("acc", (1,), "int32")}
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(image, n, 0, 0, 0), y=(out, n, 0, 0, 0), **given)
    return f.lowering()


def region(buffer: Any, tensor: Tensor, n: Any, c: Any) -> tuple[Any, ...]:
    """Return a buffer and the first index of one of its channels."""
    return (buffer, n, *{"NCHW": (c, 0, 0), "NHCW": (0, c, 0)}.get(tensor.layout, (0, 0, c)))


def depthwise(view: LayerView) -> Lowering:
    """Build the layer with the 3x3 kernel."""
    if reads_bytes(view):
        return _over_rows(view)
    if band.is_band(view):
        return _band(view)
    constants = (
        Operand("channels", (view.op.out_channels, channel_words(view)), "int32"),
        Operand("fields", FIELDS.shape, "int32"),
    )
    return over_planes(view, plane_of(view), _plane(view), constants)


def over_planes(view: LayerView, plane: Plane, block: Block, constants: tuple[Operand, Operand]) -> Lowering:
    """Loop over images and channels around `block`.

    Its operands are plane, channel, y, fields, acc.
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    padding, channel = fill(view, plane), widened(view, plane)

    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.physical_shape, x.dtype)
        channels, fields = (f.constant(operand.name, operand.shape, operand.dtype) for operand in constants)
        geometry = f.constant("widen", WIDEN.shape, "int32")
        out = f.output(0, y.physical_shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        scratch = f.scratch("plane", (plane.elements,), "int16")
        f.place(padding, plane=scratch)

        def place(n: Any, c: Any) -> None:
            f.place(block, plane=scratch, channel=(channels, c, 0), y=region(out, y, n, c), fields=fields, acc=acc)

        with f.loop(("n", y.shape[0]), ("source", op.in_channels)) as (n, source):
            f.place(channel, x=region(image, x, n, source), widen=geometry, plane=scratch)
            if op.depth_multiplier == 1:
                place(n, source)
            else:
                with f.loop(("i", op.depth_multiplier)) as (i,):
                    place(n, source * op.depth_multiplier + i)
    return f.lowering()
