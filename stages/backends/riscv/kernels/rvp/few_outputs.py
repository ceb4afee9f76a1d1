"""CONV_2D with few output channels: dot products along the depth, four pixels at a time."""

from collections.abc import Mapping
from math import ceil, prod
from typing import Any, ClassVar, NamedTuple

from stages.backends.kernels.eight_bit import centred_weights, why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import depth_of, has_windows, run_elements
from stages.backends.kernels.structure import Structure, taps
from stages.backends.kernels.windows import whole_windows
from stages.backends.riscv.kernels.rvp.base import LANE, arithmetic, clip_word
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

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
        from stages.backends.riscv.kernels.rvp import packing

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
        from stages.backends.riscv.kernels.rvp.few_outputs_tir import convolution

        return convolution(view, target.word_bits // 32, load_bytes(view, target), LAYER)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return _cost(view, load_bytes(view, target), target)


def load_bytes(view: LayerView, target: Target) -> int:
    """Bytes per load: a register, or a lane if pixels are whole lanes and that is cheaper."""
    register = target.word_bits // 8
    loads = (register, LANE) if _in_place(view, LANE) and not _in_place(view, register) else (register,)
    return min(loads, key=lambda load: _cost(view, load, target))


class _Instructions(NamedTuple):
    """Instructions of a call, an output row and four pixels, from counts.

    Outputs go in pairs; an odd number has a single one.
    """

    call: float
    row: float
    quad: float  # of pixels
    paired: float  # the same, more where there are pairs
    pair: float  # of outputs, to requantize
    single: float
    run: float  # of the depth, for each pair and the one left
    window: float  # that is gathered
    copied: float  # run of such a window
    byte: float  # of a window that leaves the image sideways, where pixels are not whole loads


_PAIR_STEP, _SINGLE_STEP, _COPIED_STEP = 17, 12, 11  # of a load of the depth
_COUNTED = {
    64: _Instructions(155, 95, 13, 32, 105, 51, 10, 78, 37, 5.7),
    32: _Instructions(33, 184, 4, 34, 105, 55, 13, 68, 25, 4),
}


def _cost(view: LayerView, load: int, target: Target) -> float:
    op, run, counts = view.op, run_elements(view), _COUNTED[target.word_bits]
    runs, steps = depth_of(view) // run, -(-run // load)
    pairs, single = divmod(op.out_channels, 2)
    products = runs * (steps * (_PAIR_STEP * pairs + _SINGLE_STEP * single) + counts.run * (pairs + single))
    quad = counts.quad + (counts.paired if pairs else 0) + products + counts.pair * pairs + counts.single * single
    pixels = _pixels(view, load)
    gathered = pixels.gathered * (counts.window + runs * (counts.copied + _COPIED_STEP * steps))
    return (
        counts.call
        + counts.row * pixels.rows
        + pixels.quads * quad
        + gathered
        + counts.byte * pixels.sideways * runs * run
    )


class _Pixels(NamedTuple):
    """Pixel quads (also incomplete ones), windows gathered by words and by bytes, output rows."""

    quads: int
    gathered: int
    sideways: int
    rows: int


def _pixels(view: LayerView, load: int) -> _Pixels:
    batch, height, width, _ = view.outputs[0].shape
    in_place = _in_place(view, load)
    if not has_windows(view):
        pixels = height * width
        return _Pixels(batch * ceil(pixels / 4), 0 if in_place else batch * pixels, 0, batch)
    across = whole_windows(view, 1)
    columns, rows = len(across), len(whole_windows(view, 0)) if across else 0
    if not in_place:
        is_run = view.op.dilation[1] == 1 or view.op.kernel[1] == 1
        sideways = height * (width - columns) if is_run else 0
        return _Pixels(batch * height * ceil(width / 4), batch * height * width, batch * sideways, batch * height)
    parts = (across.start, columns, width - across.stop)
    quads = rows * sum(ceil(count / 4) for count in parts) + (height - rows) * ceil(width / 4)
    return _Pixels(batch * quads, batch * (height * width - rows * columns), 0, batch * height)


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
