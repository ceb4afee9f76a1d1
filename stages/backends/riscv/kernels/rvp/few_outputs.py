"""CONV_2D with few output channels: dot products along the depth, four pixels at a time."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, centred_weights, why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import depth_of, has_windows, run_elements
from stages.backends.kernels.structure import Structure, taps
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.windows import whole_windows
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import LANE, arithmetic, clip_word
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize_any
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np

LAYER = Structure.of_header("rvp_few_outputs", __file__, "few_outputs.h")


class FewOutputs(Kernel):
    """Convolution of any window without computing padding channels.

    Windows inside the image are read in place where pixels are whole registers, or on RV64 whole lanes.
    """

    name = "rvp.few_outputs_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("few_outputs.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or _why_not_shape(view)
        return shape or why_not_sums(depth_of(view), lambda: arithmetic(view, signed_activations=False, any_shift=True))

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        op, constants = view.op, arithmetic(view, signed_activations=False, any_shift=True)
        run, bits, load = run_elements(view), target.word_bits, load_bytes(view, target)
        image, out = list(view.inputs[0].shape[1:]), list(view.outputs[0].shape[1:])
        if not has_windows(view):  # an image of one line: its outputs are whole quads of pixels
            image[:2] = out[:2] = 1, prod(image[:2])
        values = {
            **dict(zip(("height", "width", "channels"), image, strict=True)),
            **dict(zip(("out_height", "out_width", "outputs"), out, strict=True)),
            **taps(op),
            "fill": op.input_zero_point,
            "clip": clip_word(view),
            "runs": depth_of(view) // run,
            "run_bytes": run,
            "in_place": _in_place(view, load),
        }
        return {
            "weights": packing.run_weights(centred_weights(view).astype(np.int8), run, load),
            "params": packing.few_params(constants.bias, constants.multiplier, constants.rounders, bits),
            "layer": LAYER.of(values),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return convolution(view, target.word_bits // 32, load_bytes(view, target), LAYER)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return _cost(view, load_bytes(view, target), target)


def load_bytes(view: LayerView, target: Target) -> int:
    """Bytes per load: a register, or a lane if pixels are whole lanes and that is cheaper."""
    register = target.word_bits // 8
    loads = (register, LANE) if _in_place(view, LANE) and not _in_place(view, register) else (register,)
    return min(loads, key=lambda load: _cost(view, load, target))


def _cost(view: LayerView, load: int, target: Target) -> float:
    """Return the estimated instructions of quads of pixels and of gathered windows."""
    op, run, (batch, height, width, _) = view.op, run_elements(view), view.outputs[0].shape
    if not has_windows(view):  # one line
        height, width = 1, height * width
    runs, steps = depth_of(view) // run, -(-run // load)
    pairs, single = divmod(op.out_channels, 2)
    products = runs * (steps * (17 * pairs + 12 * single) + 12 * (pairs + single))
    quad = 10 + (33 if pairs else 0) + products + 105 * pairs + 53 * single
    inside = height * width if _in_place(view, load) else 0
    if inside and has_windows(view):
        inside = len(whole_windows(view, 0)) * len(whole_windows(view, 1))
    gathered = (height * width - inside) * (70 + runs * (32 + 11 * steps))
    quads = -(-width // 4) + 2 * (0 < inside < height * width)  # the border has its own
    return float(100 + batch * (height * (130 + quads * quad) + gathered))


def _in_place(view: LayerView, load: int) -> bool:
    """Return whether windows inside the image are rows of whole loads."""
    return view.op.in_channels % load == 0 and (view.op.dilation[1] == 1 or view.op.kernel[1] == 1)


def _why_not_shape(view: LayerView) -> str:
    op = view.op
    if op.groups != 1:
        return f"{op.groups} groups; this kernel supports one"
    weights = centred_weights(view)
    if weights.min() < -128 or weights.max() > 127:
        return "weights minus their zero point do not fit int8"
    return why_not_nhwc(view)


def _image(view: LayerView, lanes: int, load_bytes: int, fields: Structure) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    channels = x.shape[3]
    run = run_elements(view)
    runs, steps = depth_of(view) // run, -(-run // load_bytes)

    def meaning(b: Any) -> None:
        with loop(("oy", y.shape[1]), ("ox", y.shape[2]), ("unit", op.out_channels)) as (oy, ox, unit):
            store(b.acc, b.params[unit, 0, 0], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1]), ("c", channels)) as (ky, kx, c):
                value = activation(view, b.x, (oy, ox), (ky, kx), c)
                element = (ky * op.kernel[1] + kx) * channels + c
                weight = b.weights[unit, T.truncdiv(element, run), T.truncmod(element, run)]
                store(b.acc, b.acc[0] + value * widen(weight), 0)
            multiplier = T.bitwise_and(b.params[unit, 1, 0], 0x7FFFFFFF)
            marks = (b.params[unit, n, lanes - 1] for n in (2, 1))
            store(b.y, output(view, requantize_any(b.acc[0], multiplier, b.params[unit, 2, 0], *marks)), oy, ox, unit)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("weights", (op.out_channels, runs, steps * load_bytes), "int8"),
        Operand("params", (op.out_channels, 3, lanes), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("scratch", (4 * runs * steps * load_bytes,), "int8", "w"),
        Operand("layer", fields.shape, "int32"),
        accumulator(),
    )
    function = f"rvp_few_outputs_{'' if load_bytes == 4 * lanes else 'lanes_'}{SUFFIX[x.dtype]}"
    return Block("image", operands, meaning, function, lambda b: [b.x, b.weights, b.params, b.y, b.scratch, b.layer])


def convolution(view: LayerView, lanes: int, load_bytes: int, fields: Structure) -> Lowering:
    """Loop over images.

    `load_bytes`: bytes per load, a register or one lane of it.
    """
    return over_images("conv2d", _image(view, lanes, load_bytes, fields), view.inputs[0].shape[0])
