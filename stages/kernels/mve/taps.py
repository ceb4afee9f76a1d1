"""DEPTHWISE_CONV_2D on NHWC images, channel by channel: a window is one or a few vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import centred_weights, why_not_centred_types, why_not_sums
from stages.kernels.mve.base import MveKernel, arithmetic
from stages.kernels.mve.lines import GROUP, WIDEST, parts_of
from stages.kernels.mve.strips import (
    CHUNK,
    FIELDS,
    STEPS,
    chunks_of,
    fields,
    pitch_of,
    step_of,
    taps_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.kernels.mve.base import Arithmetic
    from stages.targets.spec import Target

MOST_TAPS = 255  # which a byte numbers
MOST_BYTES = 32767 // 8  # from a strip, or an output pixel, to the next: eight of them are offsets of 16 bits


class DepthwiseTaps(MveKernel):
    """Any window, stride, dilation and multiplier."""

    name = "mve.depthwise_taps_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    sources = ("taps.S", "taps.c")
    headers: ClassVar[tuple[str, ...]] = ("taps.h",)

    def why_not_operator(self, view: LayerView) -> str:
        if bad := why_not_centred_types(view):
            return bad
        if view.op.rounding != "double":
            return "rounds once"
        if taps_of(view) > MOST_TAPS:
            return f"windows of {taps_of(view)} elements; this kernel has {MOST_TAPS}"
        if pitch_of(view) > MOST_BYTES or view.outputs[0].shape[3] > MOST_BYTES:
            return f"a row of windows, or a pixel, has more than {MOST_BYTES} bytes"
        if centred_weights(view).max() > WIDEST:
            return f"a weight minus its zero point is above {WIDEST}"
        return why_not_sums(taps_of(view), lambda: taps_arithmetic(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        op, made = view.op, taps_arithmetic(view)
        groups, multiplier = -(-op.in_channels // GROUP), op.depth_multiplier
        centred = centred_weights(view)
        low = np.clip(centred, -128, 127)
        parts = np.stack([low, centred - low][: parts_of(view)], 1).astype(np.int8)

        def by_group(rows: np.ndarray) -> np.ndarray:
            """[channels, ...] as [groups, multiplier, 16, ...]."""
            rows = rows.reshape(op.in_channels, multiplier, *rows.shape[1:])
            rows = np.pad(rows, [(0, groups * GROUP - op.in_channels)] + [(0, 0)] * (rows.ndim - 1))
            return np.ascontiguousarray(np.moveaxis(rows.reshape(groups, GROUP, *rows.shape[1:]), 2, 1))

        return {
            "params": by_group(made.params.T.astype(np.int32)),
            "weights": by_group(parts),
            "rotations": _rotations(op.kernel[0], op.kernel[1]),
            "fields": FIELDS.of(fields(view)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.mve.taps_tir import depthwise

        return depthwise(view, self.function(view), taps_arithmetic(view).mode)

    def function(self, view: LayerView) -> str:
        """The C function of a group of channels."""
        mode, wide = taps_arithmetic(view).mode, "_wide" if parts_of(view) > 1 else ""
        if chunks_of(view) > 1:
            return f"mve_depthwise_taps_{mode}_many{wide}"
        has_step = step_of(view) in STEPS and not wide and mode != "shifted"
        return f"mve_depthwise_taps_{mode}_{step_of(view) if has_step else 'any'}{wide}"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """As counted: of a row of windows 28 for a channel, 38 for eight windows, or of many taps 27 for four and 10
        for each vector; 7 for 16 channels of a pixel that is copied.
        """
        op, chunks = view.op, chunks_of(view)
        batch, height, width, channels = view.outputs[0].shape
        wide = parts_of(view) - 1
        if chunks > 1:
            quad = chunks * (10 + 5 * wide) + 27
            row = 36.0 + 4 * chunks + -(-width // 4) * quad
        else:
            any_step = 8 if step_of(view) not in STEPS or wide else 0
            eights, rest = divmod(width, 8)
            eight = 38 + any_step + 8 * wide
            row = 28.0 + eights * eight + (0 if not rest else eight + 4 if rest > 4 else eight / 2 + 6)
        if taps_arithmetic(view).mode == "shifted":
            row += width * 2
        copies, pixels = (
            height * op.stride[0] if op.dilation[0] == 1 else height * op.kernel[0],
            view.inputs[0].shape[2],
        )
        if op.dilation[1] > 1:
            pixels = width * op.kernel[1]
        groups = -(-op.in_channels // GROUP)
        copied = groups * copies * (pixels * (7 if op.in_channels > GROUP // 2 else 6) + 55)
        if op.in_channels == 1:
            copied = copies * (pixels * 5 / 8 + 55)
        return batch * (height * (channels * row + groups * (70 + 45 * op.depth_multiplier)) + copied + groups * 150)


def taps_arithmetic(view: LayerView) -> Arithmetic:
    """The layer's constants with weights as [channels, (ky, kx)]: mode exact only where a function has it."""
    has_exact = step_of(view) in STEPS and parts_of(view) == 1 and chunks_of(view) == 1
    return arithmetic(view, lowered=not has_exact)


def _rotations(kernel_y: int, kernel_x: int) -> np.ndarray:
    """[kernel_y, chunks * 16]: the taps (ky * kernel_x + kx) of a window's bytes, where its first row is in line i."""
    import numpy as np

    size = kernel_y * kernel_x
    found = np.full((kernel_y, -(-size // CHUNK) * CHUNK), MOST_TAPS, np.uint8)
    byte = np.arange(size)
    for first in range(kernel_y):
        found[first, :size] = (byte % kernel_y - first) % kernel_y * kernel_x + byte // kernel_y
    return found
