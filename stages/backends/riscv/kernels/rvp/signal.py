"""TFLM's signal operators on frames of int16, a register at a time."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic import signal as generic
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.signal import (
    Energy16,
    RegisterRfft,
    ScaleBits16,
    ScaleUp16,
    Window16,
    frames_of,
    rfft_call,
)
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.layers import Array
from stages.support.lazy import np


class Window(Window16):
    """SignalWindow with KHM16."""

    name = "rvp.signal_window"
    function = "rvp_window"
    fraction = 15
    instructions = 2.0

    def alignment(self, target: Target) -> int:
        return target.word_bits // 8


class ScaleBits(ScaleBits16):
    """Left shift that uses all bits of a frame, with SMAX16 and SMIN16."""

    name = "rvp.signal_scale_bits"
    function = "rvp_scale_bits"
    instructions = 1.5

    def alignment(self, target: Target) -> int:
        return target.word_bits // 8


class ScaleUp(ScaleUp16):
    """Left shift of a frame with SLL16."""

    name = "rvp.signal_scale_up"
    function = "rvp_scale_up"
    instructions = 1.5

    def alignment(self, target: Target) -> int:
        return target.word_bits // 8


class Energy(Energy16):
    """SignalEnergy with SMBB16 and SMTT16."""

    name = "rvp.signal_energy"
    function = "rvp_energy"
    instructions = 2.0


class Rfft(RegisterRfft):
    """A complex number in a register, two on RV64; SMDRS and KMXDA for a product."""

    name = "rvp.signal_rfft"
    function = "rvp_rfft"
    per_number = 9.0

    def lanes(self, target: Target) -> int:
        return target.word_bits // 32

    def alignment(self, target: Target) -> int:
        return target.word_bits // 8

    def scratch(self, view: LayerView, target: Target) -> int:
        """Return scratch in complex numbers; with a spectrum on RV64 for several frames."""
        padding = super().scratch(view, target)
        return padding + view.op.length // 2 + 2 if self._is_apart(view, target) else padding

    def _is_apart(self, view: LayerView, target: Target) -> bool:
        return self.lanes(target) > 1 and frames_of(view.inputs[0].shape) > 1

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        if not self._is_apart(view, target):
            return super().lower(view, params, target)
        constants, integers = (
            self.pack_for(view, params, target),
            (*self.integers(view), int(self.padded(view, target))),
        )
        return rfft_call(view, "rvp_rfft_apart", constants, self.scratch(view, target), integers)


class FilterBank(generic.FilterBank):
    """SignalFilterBank, two bins at a time; UMAR64 on RV64."""

    name = "rvp.signal_filter_bank"
    sources = ("signal_bank.c",)
    prefix = "rvp"
    instructions = 7.0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if min(view.constant(role).min(initial=0) for role in ("weights", "unweights")) < 0:
            return "weights below 0"
        bins = view.inputs[0].shape[-1]
        if any(first + count > bins for first, count, _ in self._pairs(view)):
            return f"weights of the last of {bins} bins, an odd number"
        return ""

    def _pairs(self, view: LayerView) -> list[tuple[int, int, Array]]:
        """Return first bin, bins and weights of each section, padded with zeros to pairs of bins."""
        packed = super().pack(view, self.params())
        pairs, (firsts, counts) = packed["weights"], packed["bank"][3:].reshape(-1, 2).T
        sections = []
        parts = np.split(pairs[: counts.sum()], np.cumsum(counts)[:-1])
        for first, count, weights in zip(firsts, counts, parts, strict=True):
            widened = np.pad(weights, ((0, int(count) % 2), (0, 0)))
            sections.append((int(first), len(widened), widened))
        return sections

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """Return the weights of both channels side by side, for pairs of bins."""
        sections = self._pairs(view)
        places = [number for first, count, _ in sections for number in (first, count)]
        bank = np.array([*super().pack(view, params)["bank"][:3], *places], np.int32)
        weights = np.concatenate([np.zeros((0, 2), np.int16), *(weights for _, _, weights in sections)])
        return {"weights": weights if weights.size else np.zeros((2, 2), np.int16), "bank": bank}


class SquareRoot(generic.SquareRoot):
    """Rounded square roots, with CLZ32."""

    name = "rvp.signal_square_root"
    sources = ("signal_channels.c",)
    headers: ClassVar[tuple[str, ...]] = ("signal_channels.h",)
    prefix = "rvp"
    instructions = 50.0


class NoiseEstimate(generic.NoiseEstimate):
    """Smoothed noise of each channel.

    The C is that of `generic`, in the file that Channels needs anyway.
    """

    name = "rvp.signal_noise_estimate"
    sources = ("signal_channels.c",)
    headers: ClassVar[tuple[str, ...]] = ("signal_channels.h",)
    prefix = "rvp"


class Channels(generic.Channels):
    """Subtraction of the noise, gain control, logarithms, with CLZ32."""

    name = "rvp.signal_channels"
    sources = ("signal_channels.c",)
    headers: ClassVar[tuple[str, ...]] = ("signal_channels.h",)
    prefix = "rvp"
    instructions = 35.0


KERNELS: tuple[type[Kernel], ...] = (
    Channels,
    Energy,
    FilterBank,
    NoiseEstimate,
    Rfft,
    ScaleBits,
    ScaleUp,
    SquareRoot,
    Window,
)
