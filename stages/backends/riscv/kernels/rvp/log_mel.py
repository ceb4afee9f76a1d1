"""Log-mel spectra of frames, and features of them; on RV64 two numbers at a time."""

from collections.abc import Mapping
from typing import ClassVar

from stages.backends.generic.kernels.generic import log_mel as generic
from stages.backends.kernels.kernel import Kernel
from stages.backends.kernels.log_mel import lane_tables
from stages.backends.kernels.signal import frames_of
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class LogMel(generic.LogMel):
    """RV64: SMMUL for the FFT, SMAR64 for the triangles. RV32: portable C with CLZ32."""

    name = "rvp.log_mel"
    sources = ("log_mel.c",)
    prefix = "rvp"
    per_number = 9.0  # of RV64
    per_bin = 10.0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        frame = view.inputs[0].shape[-1]
        if frames_of(view.inputs[0].shape) > 1 and frame % 4 and target.word_bits == 64:
            return f"frames of {frame} samples; of several, each needs a multiple of 4"
        return ""

    def fft_tables(self, view: LayerView, target: Target) -> Mapping[str, Array]:
        if target.word_bits == 32:
            return super().fft_tables(view, target)
        return lane_tables(view.constant("window"), view.op.fft_length, lanes=2, first_bin=0)


class MelFeatures(generic.MelFeatures):
    """Sums of a log-mel spectrum with SMAR64."""

    name = "rvp.mel_features"
    headers: ClassVar[tuple[str, ...]] = ("log_mel.h",)
    prefix = "rvp"
    per_product = 2.0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        depth, size = view.constant("weights").shape[1], view.inputs[0].shape[-1]
        is_even = depth == size and size % 2 == 0
        return "" if is_even else f"sums of {depth} of {size} values; it needs all, an even number"

    def weights(self, view: LayerView) -> Array:
        """Return the weight rows; each four weights are in the order 0 2 1 3."""
        weights = view.constant("weights")
        fours = np.pad(weights, ((0, 0), (0, -weights.shape[1] % 4))).reshape(-1, 2, 2)
        return fours.transpose(0, 2, 1).reshape(len(weights), -1).astype(np.int16)


KERNELS: tuple[type[Kernel], ...] = (LogMel, MelFeatures)
