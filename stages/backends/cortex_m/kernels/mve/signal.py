"""TFLM's signal operators on frames of int16, a vector at a time."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic import signal as generic
from stages.backends.kernels.kernel import Kernel
from stages.backends.kernels.rfft_tables import block_factors, block_places
from stages.backends.kernels.signal import Energy16, FrameKernel, Rfft16, ScaleBits16, ScaleUp16, Window16, rfft_call
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class Window(Window16):
    """SignalWindow with VQDMULH."""

    name = "mve.signal_window"
    function = "mve_window"
    fraction = 15
    instructions = 0.7

    def alignment(self, target: Target) -> int:
        return 2


class ScaleBits(ScaleBits16):
    """Left shift that uses all bits of a frame, with VMAXAV."""

    name = "mve.signal_scale_bits"
    function = "mve_scale_bits"
    instructions = 0.5

    def alignment(self, target: Target) -> int:
        return 2


class ScaleUp(ScaleUp16):
    """Left shift of a frame with VSHL."""

    name = "mve.signal_scale_up"
    function = "mve_scale_up"
    instructions = 0.5

    def alignment(self, target: Target) -> int:
        return 2


class Energy(Energy16):
    """SignalEnergy with VMULLB and VMULLT."""

    name = "mve.signal_energy"
    function = "mve_energy"
    instructions = 0.9


class FilterBank(FrameKernel):
    """SignalFilterBank with VMLALDAVA and unsigned weights."""

    name = "mve.signal_filter_bank"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_filter_bank"})
    function = "mve_filter_bank"
    instructions = 4.0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if min(view.constant(role).min(initial=0) for role in ("weights", "unweights")) < 0:
            return "weights below 0"
        return super().why_not_layer(view, target)

    def integers(self, view: LayerView) -> Sequence[int]:
        return ()

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """Return the weights of each section, channel by channel, and the sections."""
        packed = generic.FilterBank().pack(view, params)
        pairs, ends = packed["weights"], np.cumsum(packed["bank"][4::2])
        sections = np.split(pairs[: ends[-1]], ends[:-1])
        weights = np.concatenate([section.T.reshape(-1) for section in sections]).astype(np.uint16)
        return {"weights": weights if weights.size else np.zeros(1, np.uint16), "bank": packed["bank"]}


class Rfft(Rfft16):
    """Four complex numbers in a vector; VQRDMLSDH and VQRDMLADHX for their products."""

    name = "mve.signal_rfft"
    function = "mve_rfft"
    per_number = 2.4

    def unit(self, target: Target) -> int:
        return 8

    def scratch(self, view: LayerView, target: Target) -> int:
        return int(view.op.length // 2)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        numbers = view.op.length // 2
        return {"places": block_places(numbers), "factors": block_factors(numbers)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Any:
        constants = self.pack_for(view, params, target)
        integers = (*self.integers(view), int(self.padded(view, target)))
        return rfft_call(view, self.function, constants, self.scratch(view, target), integers)


class NoiseEstimate(generic.NoiseEstimate):
    """Smoothed noise of each channel; 64-bit products with VMUL and VMULH."""

    name = "mve.signal_noise_estimate"
    sources = ("signal_channels.c",)
    headers: ClassVar[tuple[str, ...]] = ("signal_channels.h",)
    prefix = "mve"
    instructions = 9.0


class Channels(generic.Channels):
    """Subtraction of the noise, gain control, logarithms; entries of tables are gathered."""

    name = "mve.signal_channels"
    sources = ("signal_channels.c",)
    headers: ClassVar[tuple[str, ...]] = ("signal_channels.h",)
    prefix = "mve"
    instructions = 9.0


KERNELS: tuple[type[Kernel], ...] = (Channels, Energy, FilterBank, NoiseEstimate, Rfft, ScaleBits, ScaleUp, Window)
