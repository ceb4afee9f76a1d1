"""Log-mel spectra of frames, and features of them."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.signal import frames_call, frames_of, rfft_call
from stages.backends.kernels.structure import Structure
from stages.backends.targets.spec import Target
from stages.ir.arithmetic import mel
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.log_mel import is_diagonal
from stages.support.lazy import np

LOG_MEL = Structure.of_header("fl_log_mel", __file__, "../../../kernels/include/log_mel_types.h")
MEL_FEATURES = Structure.of_header("fl_mel_features", __file__, "../../../kernels/include/mel_features_image.h")


class LogMel(Kernel):
    """Log-mel spectrum by frames: an FFT of 32 bits in place, triangles, logarithms.

    prefix       of the C function's name
    per_number   instructions per complex number and radix-4 stage
    per_bin      instructions per bin of the spectrum
    """

    name = "generic.log_mel"
    ops: ClassVar[frozenset[str]] = frozenset({"log_mel"})
    sources = ("log_mel.c",)
    calls = True
    bits = 16
    prefix: ClassVar[str] = "fl"
    per_number: ClassVar[float] = 14.0
    per_bin: ClassVar[float] = 20.0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def fft_tables(self, view: LayerView, target: Target) -> Mapping[str, Array]:
        """Return the constants window, places and factors, in this order."""
        places = np.zeros(1, np.uint16)
        return {"window": view.constant("window"), "places": places, "factors": mel.sines(view.op.fft_length)}

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        """Return the constants in the order of the C function's arguments."""
        op, edges, bias = view.op, view.constant("edges"), view.constant("bias")
        tables = [mel.logarithms()] if op.power == 2 else [mel.logarithms(), mel.roots()]
        fields = {
            "frame": len(view.constant("window")),
            "fft_length": op.fft_length,
            "pre_emphasis": op.pre_emphasis or 0,
            "mels": len(bias),
            "floor": op.floor,
            "has_offset": int(view.has("offset")),
        }
        return {
            **self.fft_tables(view, target),
            "table": np.concatenate(tables),
            "edges": edges,
            "ramps": np.pad(view.constant("ramps") << (31 - mel.WEIGHT_BITS), (edges[0], 2)).astype(np.int32),
            "bias": np.vstack([bias, view.constant("offset")]) if view.has("offset") else bias,
            "log_mel": LOG_MEL.of(fields),
        }

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        op, mels = view.op, view.outputs[0].shape[-1]
        points, bins = op.fft_length // 2, len(view.constant("ramps"))
        stages = (points.bit_length() - 1) / 2
        roots = 30 * bins if op.power == 1 else 0
        frame = self.per_number * points * (stages + 1) + self.per_bin * bins + roots + 60 * mels
        return float(frame * frames_of(view.outputs[0].shape))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        op = view.op
        function = f"{self.prefix}_log_mel_{'power' if op.power == 2 else 'magnitude'}"
        if op.pre_emphasis is not None:
            function += "_emphasized"
        constants, frames = self.pack_for(view, params, target), frames_of(view.inputs[0].shape)
        return rfft_call(view, function, constants, op.fft_length + 2, (frames,))


class MelFeatures(Kernel):
    """Sums of a log-mel spectrum (DCT), or its scaled values.

    prefix       of the C function's name
    per_product  instructions per product
    """

    name = "generic.mel_features"
    ops: ClassVar[frozenset[str]] = frozenset({"mel_features"})
    sources = ("mel_features.c",)
    calls = True
    bits = 0
    prefix: ClassVar[str] = "fl"
    per_product: ClassVar[float] = 4.0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def weights(self, view: LayerView) -> Array:
        """Return the weights as the C function reads them."""
        return view.constant("weights")

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        channels, depth = view.constant("weights").shape
        fields = {
            "channels": channels,
            "depth": depth,
            "step": int(is_diagonal(view.inputs[0].shape, (channels, depth))),
            "low": view.op.low,
            "high": view.op.high,
        }
        constants = {role: view.constant(role) for role in ("bias", "right_shift")}
        return {"weights": self.weights(view), **constants, "mel_features": MEL_FEATURES.of(fields)}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: per product, and 20 per feature."""
        return float(view.outputs[0].elements * (self.per_product * view.constant("weights").shape[1] + 20))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        x, y = view.inputs[0], view.outputs[0]
        function = f"{self.prefix}_mel_features_{16 if y.dtype == 'int16' else 8}"
        return frames_call(view, function, self.pack(view, params), (frames_of(x.shape), x.shape[-1]))


KERNELS: tuple[type[Kernel], ...] = (LogMel, MelFeatures)
