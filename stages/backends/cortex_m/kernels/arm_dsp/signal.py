"""TFLM's signal operators on frames of int16, two numbers at a time."""

from stages.backends.generic.kernels.generic import signal as generic
from stages.backends.kernels.kernel import Kernel
from stages.backends.kernels.signal import Energy16, RegisterRfft, ScaleBits16, ScaleUp16, Window16
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class Window(Window16):
    """SignalWindow with SMULBB and SMULTT."""

    name = "arm_dsp.signal_window"
    function = "arm_dsp_window"
    fraction = 14
    instructions = 3.1

    def overlays(self, view: LayerView) -> bool:
        return True


class ScaleBits(ScaleBits16):
    """Left shift that uses all bits of a frame, from the OR of its magnitudes."""

    name = "arm_dsp.signal_scale_bits"
    function = "arm_dsp_scale_bits"
    instructions = 2.1


class ScaleUp(ScaleUp16):
    """Left shift of a frame, as products with a power of two."""

    name = "arm_dsp.signal_scale_up"
    function = "arm_dsp_scale_up"
    instructions = 2.3


class Energy(Energy16):
    """SignalEnergy with SMUAD."""

    name = "arm_dsp.signal_energy"
    function = "arm_dsp_energy"
    instructions = 1.4


class FilterBank(generic.FilterBank):
    """SignalFilterBank with UMLAL, two bins at a time."""

    name = "arm_dsp.signal_filter_bank"
    sources = ("signal_bank.c",)
    prefix = "arm_dsp"
    instructions = 8.0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        weights = (view.constant(role).min(initial=0) for role in ("weights", "unweights"))
        return "weights below 0" if min(weights) < 0 else ""


class Rfft(RegisterRfft):
    """A complex number in a register; SMLSD and SMLADX for a product."""

    name = "arm_dsp.signal_rfft"
    function = "arm_dsp_rfft"
    per_number = 11.5

    def lanes(self, target: Target) -> int:
        return 1


KERNELS: tuple[type[Kernel], ...] = (Energy, FilterBank, Rfft, ScaleBits, ScaleUp, Window)
