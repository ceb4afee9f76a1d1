"""Log-mel spectra of frames, and features of them, four numbers at a time."""

from collections.abc import Mapping
from typing import ClassVar

from stages.backends.generic.kernels.generic import log_mel as generic
from stages.backends.kernels.kernel import Kernel
from stages.backends.kernels.log_mel import lane_tables
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

_LEAST_FFT = 64  # smaller ones have less than four butterflies in a stage


class LogMel(generic.LogMel):
    """Log-mel spectrum: VMULH for the FFT, VMLALDAVA for the triangular filters."""

    name = "mve.log_mel"
    sources = ("log_mel.c",)
    prefix = "mve"
    per_number = 4.0
    per_bin = 5.0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        points = view.op.fft_length
        return f"an FFT of {points} points; it needs {_LEAST_FFT}" if points < _LEAST_FFT else ""

    def fft_tables(self, view: LayerView, target: Target) -> Mapping[str, Array]:
        return lane_tables(view.constant("window"), view.op.fft_length, lanes=4, first_bin=1)


class MelFeatures(generic.MelFeatures):
    """Sums of a log-mel spectrum with VMLALDAVA."""

    name = "mve.mel_features"
    headers: ClassVar[tuple[str, ...]] = ("log_mel.h",)
    prefix = "mve"
    per_product = 1.2


KERNELS: tuple[type[Kernel], ...] = (LogMel, MelFeatures)
