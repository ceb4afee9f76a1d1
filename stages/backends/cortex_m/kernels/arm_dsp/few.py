"""CONV_2D and FULLY_CONNECTED with few output channels, and grouped convolutions."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic
from stages.backends.cortex_m.kernels.arm_dsp.requantize_tir import requantize
from stages.backends.cortex_m.kernels.arm_dsp.windows import AT_ONCE, Windows
from stages.backends.kernels.eight_bit import SUFFIX, lies_planar, why_not_sums, why_not_types, why_not_weights_order
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import columns_of, depth_of
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, select, widen
from stages.backends.kernels.tir.window import inside, tap
from stages.backends.kernels.tir.words import half_word
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.products import FullyConnected
from stages.support.lazy import T


class FewChannels(Kernel):
    """Up to four channels at a time, from windows in place: a panel would cost more.

    Windows that leave the image are copied first.
    """

    name = "arm_dsp.few_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    sources = ("few.S", "few.c")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        windows = Windows(view)
        if windows.groups == 1 and columns_of(view) >= AT_ONCE:
            return f"{columns_of(view)} output channels in one group; this kernel needs groups, or 1 to 3 channels"
        return why_not_types(view) or _why_not_order(view) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        windows = Windows(view)
        return {"weights": windows.weights(), "fields": windows.fields()}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return few(Windows(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, as measured.

        Products of four bytes for all channels of a block; 14 per run, 5 per result, 25 per window, 150 per copied row.
        Per layer 70 for plain rows, 200 for windows.
        """
        windows = Windows(view)
        n = windows.at_once
        four = {1: 5.5, 2: 8.2, 3: 10.2, 4: 13.2}[n]
        block = windows.runs * (windows.fours * four + 14) + 5 * n + 25
        pixels = windows.images * windows.out[0] * windows.out[1]
        copied = pixels - windows.images * windows.inside_count
        copies = copied * windows.kernel[0] * (150 + windows.kernel[1] * windows.channels / 2)
        return float(pixels * windows.groups * windows.blocks * block + copies + (70 if windows.rows_alone else 200))


def _why_not_order(view: LayerView) -> str:
    if isinstance(view.op, FullyConnected):
        return why_not_weights_order(view)
    x = view.inputs[0]
    return f"tensor {x.name} is NCHW; this kernel reads NHWC" if lies_planar(x) else ""


def _why_not_arithmetic(view: LayerView) -> str:
    return why_not_sums(depth_of(view), lambda: arithmetic(view, long=view.op.rounds_twice))


def few(made: Windows) -> Lowering:
    """Return the layer as a loop over images."""
    view = made.view
    x, y = view.inputs[0], view.outputs[0]
    (height, width), (rows, columns), count = made.size, made.out, columns_of(view)
    x_shape = (height, width, made.channels)
    y_shape = (count, rows, columns) if made.planar else (rows, columns, count)
    blocks = (made.groups * made.blocks, made.words)
    n, fill = made.at_once, getattr(view.op, "input_zero_point", 0)
    scale_from = n * (1 + made.runs * made.fours * 2)

    def element(b: Any, at: tuple[Any, Any], group: Any, run: Any, k: Any) -> Any:
        """Byte k of a run as int32."""
        if made.joined:
            position, c = (run, T.truncdiv(k, made.channels)), T.truncmod(k, made.channels)
        else:
            position = T.truncdiv(run, made.kernel[1]), T.truncmod(run, made.kernel[1])
            c = group * made.group_in + k
        walks = zip(at, position, made.stride, made.dilation, made.before, strict=True)
        iy, ix = (tap(*walk) for walk in walks)
        return select(inside(iy, height, ix, width), widen(b.x[iy, ix, c]), fill)

    def channel(b: Any, at: tuple[Any, Any], group: Any, block: Any, lane: int) -> None:
        def word(number: Any) -> Any:
            return b.weights[group * made.blocks + block, number]

        def add(run: Any, four: Any, number: int) -> None:
            weight = half_word(word(n + ((run * made.fours + four) * n + lane) * 2 + number % 2), number // 2)
            store(b.acc, b.acc[0] + element(b, at, group, run, four * 4 + number) * weight, 0)

        store(b.acc, word(lane), 0)
        with loop(("run", made.runs)) as run:
            if made.run >= 4:
                with loop(("four", made.run // 4)) as four:
                    for number in range(4):
                        add(run, four, number)
            for number in range(made.run % 4):
                add(run, made.run // 4, number)
        scale = [word(scale_from + part * n + lane) for part in range(made.scale.shape[1])]
        c = group * made.group_out + T.min(block * n, made.group_out - n) + lane
        scaled = output(view, requantize(b.acc[0], scale, view.op.rounding))
        store(b.y, scaled, *((c, *at) if made.planar else (*at, c)))

    def meaning(b: Any) -> None:
        ranges = ("oy", rows), ("ox", columns), ("group", made.groups), ("block", made.blocks)
        with loop(*ranges) as (oy, ox, group, block):
            for lane in range(n):
                channel(b, (oy, ox), group, block, lane)

    constants = (
        Operand("weights", blocks, "int32"),
        Operand("fields", (made.field_words,), "int32"),
    )
    window = made.kernel[0] * made.kernel[1] * made.channels
    operands = (
        Operand("x", x_shape, x.dtype),
        *constants,
        Operand("y", y_shape, y.dtype, "w"),
        Operand("window", (window,), "uint8", "rw"),
        accumulator(),
    )
    kind = f"{n}_{SUFFIX[x.dtype]}_{made.mode}"
    if made.rows_alone:
        call = lambda b: [b.x, b.weights, b.y, b.fields, rows * columns]  # noqa: E731
        image = Block("image", operands, meaning, f"arm_dsp_few{kind}", call)
    else:
        call = lambda b: [b.x, b.weights, b.y, b.window, b.fields]  # noqa: E731
        image = Block("image", operands, meaning, f"arm_dsp_conv{kind}", call)
    with Function(view.op.op) as f:
        source = f.input(0, (made.images, *x_shape), x.dtype)
        given = {operand.name: f.constant(operand.name, operand.shape, operand.dtype) for operand in constants}
        out = f.output(0, (made.images, *y_shape), y.dtype)
        scratch, acc = f.scratch("window", (window,), "uint8"), f.scratch("acc", (1,), "int32")
        with f.loop(("n", made.images)) as (i,):
            f.place(image, x=(source, i, 0, 0, 0), y=(out, i, 0, 0, 0), window=scratch, acc=acc, **given)
    return f.lowering()
