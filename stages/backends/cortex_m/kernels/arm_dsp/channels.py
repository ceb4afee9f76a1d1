"""Blocks of four channels for depthwise_channels.S."""

from __future__ import annotations

from math import prod

from stages.backends.cortex_m.kernels.arm_dsp.base import CLAMP, arithmetic, clamps
from stages.backends.cortex_m.kernels.arm_dsp.packing import half_words
from stages.backends.cortex_m.kernels.arm_dsp.planes import centred_taps
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.structure import SIZES, TAPS, Structure, sizes, taps
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

BLOCK = 4
FIELDS = Structure(
    "arm_dsp_channels", (*SIZES, *TAPS, "multiplier", "y_pixel", "y_group", "words", "pairs", "last", *CLAMP, "step")
)


def pairs(view: LayerView) -> int:
    """Pairs of taps."""
    return -(-prod(view.op.kernel) // 2)


def scale_words(view: LayerView) -> int:
    """Words of a channel's rounding constants."""
    return int(arithmetic(view, long=True).scale.scale.shape[1])


def block_words(view: LayerView) -> int:
    """Words of a block: biases, weights, scales."""
    return BLOCK * (1 + pairs(view) + scale_words(view))


def block_count(view: LayerView) -> int:
    """Blocks of the input channels."""
    return -(-int(view.inputs[0].shape[3]) // BLOCK)


def starts(view: LayerView) -> npt.NDArray[np.int64]:
    """Return the first channel of each block; the last block may overlap the one before it."""
    return np.minimum(np.arange(block_count(view)) * BLOCK, view.inputs[0].shape[3] - BLOCK)


def blocks(view: LayerView) -> npt.NDArray[np.int32]:
    """Return the packed constants, int32 [multiplier, blocks, words]."""
    constants, weights_of = arithmetic(view, long=True), centred_taps(view)
    multiplier, tapped = view.op.depth_multiplier, weights_of.reshape(len(weights_of), -1)
    # The sums are of the bytes as they are, uint8 too.
    bias = constants.bias - INT8_OFFSET[view.inputs[0].dtype] * tapped.sum(1)
    padded = np.pad(tapped, ((0, 0), (0, tapped.shape[1] % 2)))
    # [multiplier, blocks, 4]: numbers of output channels
    numbers = (starts(view)[:, None] + np.arange(BLOCK))[None] * multiplier + np.arange(multiplier)[:, None, None]
    weights = padded[numbers].transpose(0, 1, 3, 2)  # channels of each tap
    words = half_words(weights.reshape(*weights.shape[:3], 2, 2).swapaxes(-1, -2))
    parts = [
        bias[numbers].astype(np.uint64).astype(np.uint32).view(np.int32),
        words.reshape(*words.shape[:2], -1),
        constants.scale.scale[numbers].swapaxes(-1, -2).reshape(*numbers.shape[:2], -1),
    ]
    return np.concatenate(parts, 2).astype(np.int32)


def is_near(view: LayerView) -> bool:
    """Return whether neighbouring channels have neighbouring results."""
    return _steps(view)[2] == 1


def fields(view: LayerView) -> dict[str, int]:
    """Return the fields of the C structure arm_dsp_channels."""
    pixel, group, channel = _steps(view)
    return {
        **sizes(view),
        **taps(view.op),
        "multiplier": view.op.depth_multiplier,
        "y_pixel": pixel,
        "y_group": group,
        "words": block_count(view) * block_words(view),
        "pairs": pairs(view),
        "last": view.inputs[0].shape[3] - BLOCK,
        **clamps(view),
        "step": channel,
    }


def _steps(view: LayerView) -> tuple[int, int, int]:
    """Return bytes of y between pixels, between results of a channel, and between channels."""
    multiplier, y = view.op.depth_multiplier, view.outputs[0]
    pixels = y.shape[1] * y.shape[2]
    return (1, pixels, multiplier * pixels) if y.layout == "NCHW" else (y.shape[3], 1, multiplier)
