"""Log-mel spectra of frames, and features of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.ir.operators.log_mel import is_diagonal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView

LOG_MEL = Structure("fl_log_mel", ("frame", "fft_length", "pre_emphasis", "mels", "floor", "has_offset"))
MEL_FEATURES = Structure("fl_mel_features", ("channels", "depth", "step", "low", "high"))


class LogMel(Kernel):
    """Log-mel spectrum, one frame after the other: an FFT of 32 bits in place, energies, triangles, logarithms."""

    name = "generic.log_mel"
    ops: ClassVar[frozenset[str]] = frozenset({"log_mel"})
    sources = ("log_mel.c",)
    headers: ClassVar[tuple[str, ...]] = ("log_mel.h",)
    bits = 16

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.ir.arithmetic import mel

        op, window = view.op, view.constant("window")
        tables = [mel.logarithms()] if op.power == 2 else [mel.logarithms(), mel.roots()]
        fields = {
            "frame": len(window),
            "fft_length": op.fft_length,
            "pre_emphasis": op.pre_emphasis or 0,
            "mels": len(view.constant("bias")),
            "floor": op.floor,
            "has_offset": int(view.has("offset")),
        }
        return {
            "window": window,
            "sines": mel.sines(op.fft_length),
            "table": np.concatenate(tables),
            "edges": view.constant("edges"),
            "ramps": view.constant("ramps").astype(np.uint16),
            "bias": view.constant("bias"),
            **({"offset": view.constant("offset")} if view.has("offset") else {}),
            "log_mel": LOG_MEL.of(fields),
        }

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions: 17 per sample, 16 per point and radix-4 stage, 22 per bin, 60 per filter."""
        op, mels = view.op, view.outputs[0].shape[-1]
        points, bins = op.fft_length // 2, len(view.constant("ramps"))
        stages = (points.bit_length() - 1) // 2
        roots = 30 * bins if op.power == 1 else 0
        frame = 17 * len(view.constant("window")) + 16 * points * stages + 20 * points + 12 * bins + roots + 60 * mels
        return float(frame * view.outputs[0].elements // mels)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.log_mel_tir import log_mel

        return log_mel(view, LOG_MEL.shape)


class MelFeatures(Kernel):
    """Sums of a log-mel spectrum (DCT), or its scaled values."""

    name = "generic.mel_features"
    ops: ClassVar[frozenset[str]] = frozenset({"mel_features"})
    sources = ("mel_features.c",)
    headers: ClassVar[tuple[str, ...]] = ("mel_features.h",)
    bits = 0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        weights = view.constant("weights")
        fields = {
            "channels": weights.shape[0],
            "depth": weights.shape[1],
            "step": int(is_diagonal(view.inputs[0].shape, weights.shape)),
            "low": view.op.low,
            "high": view.op.high,
        }
        constants = {role: view.constant(role) for role in ("weights", "bias", "right_shift")}
        return {**constants, "mel_features": MEL_FEATURES.of(fields)}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 4 instructions per product, 20 per feature."""
        return float(view.outputs[0].elements * (4 * view.constant("weights").shape[1] + 20))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.log_mel_tir import mel_features

        return mel_features(view, MEL_FEATURES.shape)


KERNELS: tuple[type[Kernel], ...] = (LogMel, MelFeatures)
