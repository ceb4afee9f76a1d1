"""TFLM's signal operators in portable C."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.signal import frames_of
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.backends.targets.spec import Target
from stages.ir.arithmetic.kissfft import factors, first_order, real_twiddles, twiddles
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.signal_filter_bank import log_table
from stages.support.lazy import np

STAGES = 16  # of an FFT, at most
FFT = Structure("fl_fft", ("frames", "samples", "half", "stages", *(f"radix{number}" for number in range(STAGES))))


class Signal(Kernel):
    """A call of a C function on all frames.

    instructions  per element of the input
    prefix        of the C function's name
    """

    sources = ("signal.c",)
    calls = True
    instructions: ClassVar[float]
    prefix: ClassVar[str] = "fl"

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return self.instructions * view.inputs[0].elements + 20

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {role: view.constant(role) for role in view.layer.constants}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return called(view, self.pack_for(view, params, target), self.prefix)


class Window(Signal):
    """SignalWindow: products of samples and weights."""

    name = "generic.signal_window"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_window"})
    instructions = 8.0

    def overlays(self, view: LayerView) -> bool:
        return True


class AutoScale(Signal):
    """SignalFftAutoScale: the left shift that uses all bits of a frame, and the shifted frame."""

    name = "generic.signal_scale"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_scale_bits", "signal_scale_up"})
    instructions = 7.0

    def overlays(self, view: LayerView) -> bool:
        return bool(view.op.op == "signal_scale_up")


class Energy(Signal):
    """SignalEnergy: squared magnitudes."""

    name = "generic.signal_energy"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_energy"})
    instructions = 4.0


class FilterBank(Signal):
    """SignalFilterBank: weighted sums of bins in 64 bits."""

    name = "generic.signal_filter_bank"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_filter_bank"})
    instructions = 12.0

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """Return the weights of both channels side by side, without zeros at a section's ends."""
        x, y = view.inputs[0], view.outputs[0]
        pairs, places = [np.zeros((0, 2), np.int16)], [frames_of(x.shape), x.shape[-1], y.shape[-1]]
        for first, *weights in view.op.sections(view):
            both = np.stack(weights, -1)
            used = np.flatnonzero(both.any(-1))
            begin, end = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
            pairs.append(both[begin:end])
            places += [first + begin if used.size else 0, end - begin]
        joined = np.concatenate(pairs)
        return {"weights": joined if joined.size else np.zeros((1, 2), np.int16), "bank": np.array(places, np.int32)}


class SquareRoot(Signal):
    """Rounded square roots of 64-bit numbers."""

    name = "generic.signal_square_root"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_square_root"})
    instructions = 90.0


class NoiseEstimate(Signal):
    """SignalFilterBankSpectralSubtraction: the smoothed noise of each channel."""

    name = "generic.signal_noise_estimate"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_noise_estimate"})
    instructions = 35.0

    def overlays(self, view: LayerView) -> bool:
        return True

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, x = view.op, view.inputs[0]
        factors = [number for pair in zip(op.smoothing, op.rest, strict=True) for number in pair]
        fields = [frames_of(x.shape), x.shape[-1], *factors, op.smoothing_bits, op.bits, int(op.clamping)]
        return {"noise": np.array(fields, np.int32)}


class Channels(Signal):
    """Subtraction of the noise, gain control, logarithms."""

    name = "generic.signal_channels"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_subtract_noise", "signal_pcan", "signal_log"})
    instructions = 40.0

    def overlays(self, view: LayerView) -> bool:
        return bool(view.op.op != "signal_log")

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {"table": log_table()} if view.op.op == "signal_log" else super().pack(view, params)


class _Fft(Signal):
    sources = ("signal_fft16.c",)
    headers: ClassVar[tuple[str, ...]] = ("signal_fft.h",)
    instructions = 0.0
    dtype: ClassVar[str] = "int16"
    per_stage: ClassVar[float] = 30.0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        dtype = view.inputs[0].dtype
        return "" if dtype == self.dtype else f"{dtype}; this kernel is for {self.dtype}"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        x, half, inverse = view.inputs[0], view.op.length // 2, view.op.op == "signal_irfft"
        radices = factors(half)[::-1]
        fields = [frames_of(x.shape), x.shape[-1], half, len(radices), *radices, *[0] * (STAGES - len(radices))]
        return {
            "twiddles": twiddles(half, half, x.dtype, inverse=inverse),
            "real_twiddles": real_twiddles(half, x.dtype, inverse=inverse),
            "order": first_order(half),
            "fft": FFT.of(dict(zip(FFT.fields, fields, strict=True))),
        }

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions: Return `per_stage` instructions per number and stage of radix 4."""
        from math import log

        half = view.op.length // 2
        return frames_of(view.inputs[0].shape) * half * self.per_stage * (log(half, 4) + 1)


class Fft16(_Fft):
    """FFTs in int16."""

    name = "generic.signal_fft16"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_rfft", "signal_irfft"})


class Fft32(_Fft):
    """FFTs in int32."""

    name = "generic.signal_fft32"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_rfft", "signal_irfft"})
    sources = ("signal_fft32.c",)
    dtype = "int32"
    per_stage = 80.0


class FloatFft(_Fft):
    """FFTs in float32."""

    name = "generic.signal_float_fft"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_rfft", "signal_irfft"})
    sources = ("signal_fft_float.c",)
    dtype = "float32"
    per_stage = 200.0


KERNELS: tuple[type[Kernel], ...] = (
    AutoScale,
    Channels,
    Energy,
    Fft16,
    Fft32,
    FilterBank,
    FloatFft,
    NoiseEstimate,
    SquareRoot,
    Window,
)


# Integer arguments of the functions, behind the buffers. Buffers are inputs, constants, states, outputs, scratch.
_FFT = {"int16": "s16", "int32": "s32", "float32": "f32"}


def _frames(view: LayerView) -> list[int]:
    return [prod(view.inputs[0].shape[:-1]), view.inputs[0].shape[-1]]


def _bins(view: LayerView) -> list[int]:
    bins = view.outputs[0].shape[-1]
    return [prod(view.inputs[0].shape[:-1]), bins, view.op.start, view.op.end]


def _subtraction(view: LayerView) -> list[int]:
    op = view.op
    return [view.inputs[0].elements, op.smoothing_bits, op.bits, op.least]


_INTEGERS: Mapping[str, Callable[[LayerView], list[int]]] = {
    "signal_window": lambda view: [*_frames(view), view.op.shift],
    "signal_scale_bits": lambda view: [*_frames(view), int(view.op.ignores_lowest)],
    "signal_scale_up": _frames,
    "signal_energy": _bins,
    "signal_square_root": _frames,
    "signal_subtract_noise": _subtraction,
    "signal_pcan": lambda view: [view.inputs[0].elements, view.op.snr_shift],
    "signal_log": lambda view: [view.inputs[0].elements, view.op.scale, view.op.correction_bits],
}


def _function(view: LayerView, constants: Mapping[str, Array], prefix: str) -> str:
    name = view.op.op
    if name in ("signal_rfft", "signal_irfft"):
        return f"{prefix}_{name.removeprefix('signal_')}_{_FFT[view.inputs[0].dtype]}"
    is_signed = name == "signal_filter_bank" and constants["weights"].min() < 0
    return f"{prefix}_{name}_signed" if is_signed else f"{prefix}_{name}"


def called(view: LayerView, constants: Mapping[str, Array], prefix: str = "fl") -> Lowering:
    """Return the call of the layer's function: inputs, constants, states, outputs, integers.

    The function's name begins with `prefix`.
    """
    with StatefulFunction(view.op.op) as f:
        inputs = [f.input(number, (x.elements,), x.dtype) for number, x in enumerate(view.inputs)]
        packed = {key: f.constant(key, array.shape, str(array.dtype)) for key, array in constants.items()}
        states = [f.state(number, (tensor.elements,), tensor.dtype) for number, tensor in enumerate(view.states)]
        y = f.output(0, (view.outputs[0].elements,), view.outputs[0].dtype)
        f.call(_function(view, constants, prefix), *_arguments(f, view, inputs, packed, states, y))
    return f.lowering()


def remembered(view: LayerView, constants: Mapping[str, Array]) -> Lowering:
    """Return the call for a layer with up to two states: samples and a count.

    For a missing state the function gets the output and does not touch it.
    """
    (x,), y, name = view.inputs, view.outputs[0], view.op.op
    has_samples, has_count = (any((t.dtype == "int32") == is_count for t in view.states) for is_count in (False, True))
    with StatefulFunction(name) as f:
        read = f.input(0, (x.elements,), x.dtype)
        ((key, array),) = constants.items()
        parameters = f.constant(key, array.shape, str(array.dtype))
        states = [f.state(number, (tensor.elements,), tensor.dtype) for number, tensor in enumerate(view.states)]
        written = f.output(0, (y.elements,), y.dtype)
        samples = states[0] if has_samples else written
        count = states[-1] if has_count else written
        if name.endswith("_valid"):
            f.call(f"fl_{name}", (count, "rw"), (written, "w"), (parameters, "r"))
        elif name == "signal_overlap_add":
            arguments = ((read, "r"), (samples, "rw"), (written, "w"), (parameters, "r"))
            f.call(f"fl_{name}_{_FFT[x.dtype]}", *arguments)
        else:
            function = "fl_signal_stacker" if name == "signal_stacker" else "fl_signal_framer"
            f.call(function, (read, "r"), (samples, "rw"), (count, "rw"), (written, "w"), (parameters, "r"))
    return f.lowering()


def _arguments(f: Any, view: LayerView, inputs: Any, packed: Mapping[str, Any], states: Any, y: Any) -> list[Any]:
    """Return the arguments in the order of the C function."""
    read = [(buffer, "r") for buffer in inputs]
    constants = {key: (buffer, "r") for key, buffer in packed.items()}
    if view.op.op in ("signal_rfft", "signal_irfft"):
        *tables, parameters = constants.values()
        scratch = []
        if view.op.op == "signal_irfft":
            scratch = [(f.scratch("inner", (view.op.length,), view.inputs[0].dtype), "rw")]
        return [*read, (y, "w"), *tables, *scratch, parameters]
    behind = [constants.pop(key) for key in ("bank", "noise") if key in constants]
    kept = [(buffer, "rw") for buffer in states]
    integers = _INTEGERS[view.op.op](view) if view.op.op in _INTEGERS else []
    return [*read, *constants.values(), *kept, (y, "w"), *behind, *integers]
