"""TFLM's signal operators from samples to energies: window, scaling, real FFTs, energy.

Axes before the last one are frames.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.naming import named
from stages.ir.operators.activations import same_shape
from stages.ir.operators.declaration import Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.operation import Operation, Refused, Shape
from stages.ir.operators.signal_models import MODELS
from stages.ir.operators.signal_options import SHIFT, constant, frames_of, last_axis, options_of, output_types
from stages.support.lazy import np

FFT_TYPES = {0: "float32", 2: "int32", 7: "int16"}  # by the schema's TensorType, which is the option T
_MOST_LENGTH = 1 << 16  # of an FFT
LITERT = LiteRT(version=1, tflm=True)


class Window(LayerOp):
    """SignalWindow: y = x * weights >> shift, clamped to int16."""

    op: Literal["signal_window"] = "signal_window"
    any_type: ClassVar[bool] = True
    shift: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return y."""
        product = inputs[0].astype(np.int32) * view.constant("weights").astype(np.int32) >> self.shift
        return np.clip(product, -(1 << 15), (1 << 15) - 1).astype(np.int16)


class ScaleBits(LayerOp):
    """First output of SignalFftAutoScale: the left shift that uses all bits of each frame.

    It is 15 minus the bits of the largest magnitude; 0 if all samples are 0. The magnitude of -2^15 counts as -2^15, as
    TFLM stores it in an int16: the next sample replaces it. With `ignores_lowest`, -2^15 does not count, as in
    microfrontend (window.c); a frame of no other samples but zeros is shifted by 15.
    """

    op: Literal["signal_scale_bits"] = "signal_scale_bits"
    alias: ClassVar[str] = "signal_fft_auto_scale"
    any_type: ClassVar[bool] = True
    ignores_lowest: bool = False

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the shift of each frame."""

        frames = inputs[0].reshape(-1, inputs[0].shape[-1])
        return scale_bits(frames, self.ignores_lowest).reshape(view.outputs[0].shape)


def scale_bits(frames: Array, ignores_lowest: bool) -> Array:
    """Return the left shift of each frame, int32[frames]; see ScaleBits."""
    wide = frames.astype(np.int64)
    largest = [_largest_magnitude(frame, ignores_lowest) for frame in wide]
    least = [0 if ignores_lowest and frame.any() else 1 for frame in wide]  # without others, -2^15 shifts out
    return np.array([15 - x.bit_length() if x >= low else 0 for x, low in zip(largest, least, strict=True)], np.int32)


def _largest_magnitude(frame: Array, ignores_lowest: bool) -> int:
    if ignores_lowest:
        return int(np.abs(frame[frame > -(1 << 15)]).max(initial=0))
    lowest = np.flatnonzero(frame == -(1 << 15))
    if not lowest.size:
        return int(np.abs(frame).max())
    largest = -(1 << 15)
    for value in map(int, frame[lowest[-1] + 1 :]):
        largest = value if value > largest else max(largest, -value)
    return largest


class ScaleUp(LayerOp):
    """Output 2 of SignalFftAutoScale: frames shifted left by their bits; beyond int16 wraps.

    Shifts outside of 0 to 15 give zeros; the first output has none.
    """

    op: Literal["signal_scale_up"] = "signal_scale_up"
    alias: ClassVar[str] = "signal_fft_auto_scale"
    any_type: ClassVar[bool] = True

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the shifted samples."""
        return scaled_up(*inputs)


class Rfft(LayerOp):
    """SignalRfft: FFT of zero-padded real numbers, as pairs; int16, int32 or float32.

    Fixed-point results are divided by the length (stages.ir.arithmetic.kissfft).
    """

    op: Literal["signal_rfft"] = "signal_rfft"
    any_type: ClassVar[bool] = True
    length: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return real and imaginary parts, alternating."""
        from stages.ir.arithmetic.kissfft import real_fft

        return real_fft(inputs[0], self.length).reshape(view.outputs[0].shape)


class Irfft(LayerOp):
    """SignalIrfft: the real numbers of a spectrum; float32 results are divided by the length."""

    op: Literal["signal_irfft"] = "signal_irfft"
    any_type: ClassVar[bool] = True
    length: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the real numbers."""
        from stages.ir.arithmetic.kissfft import inverse_real_fft

        x = inputs[0].reshape(*inputs[0].shape[:-1], -1, 2)
        y = inverse_real_fft(x)
        return y / np.float32(self.length) if y.dtype == np.float32 else y


class Energy(LayerOp):
    """SignalEnergy: real^2 + imaginary^2 of the bins from start to end.

    0 for other bins, which TFLM does not write.
    """

    op: Literal["signal_energy"] = "signal_energy"
    any_type: ClassVar[bool] = True
    start: int
    end: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return uint32 energies."""
        pairs = inputs[0].astype(np.int64).reshape(*view.outputs[0].shape, 2)
        energies = np.sum(pairs * pairs, -1)
        energies[..., : self.start] = energies[..., self.end :] = 0
        return energies.astype(np.uint32)


def window_options(operation: Operation) -> dict[str, int]:
    """Return the options of SignalWindow."""
    return options_of(operation, {"shift": SHIFT})


def _window(operation: Operation) -> None:
    window_options(operation)
    constant(operation, 1, last_axis(operation))
    output_types(operation, "int16")


def scaled_up(x: Array, bits: Array) -> Array:
    """Return frames shifted left by their bits, modulo 2^16; zeros for bits outside of 0 to 15."""
    factors = np.where((bits >= 0) & (bits < 16), 1 << (bits & 15), 0)
    return (x.astype(np.int64) * factors[..., None]).astype(np.int16)


def _auto_scale_reference(operation: Operation, *arrays: Array | None) -> list[Array]:
    """Return the outputs of FirmlineFftAutoScale."""
    (x,) = arrays
    assert x is not None
    bits = scale_bits(x.reshape(-1, x.shape[-1]), True).reshape(x.shape[:-1])
    return [scaled_up(x, bits), bits]


def _auto_scaled(operation: Operation) -> list[Shape]:
    return [operation.input(0).shape, frames_of(operation)]


def _fft_length(operation: Operation) -> int:
    from stages.ir.arithmetic.kissfft import factors

    options = options_of(operation, {"T": (0, 127), "fft_length": (4, _MOST_LENGTH)})
    length, dtype = options["fft_length"], operation.input(0).dtype
    if FFT_TYPES.get(options["T"]) != dtype:
        numbers = ", ".join(f"{name} = {number}" for number, name in FFT_TYPES.items())
        raise Refused(f"has the option T = {options['T']}, but reads {dtype} ({numbers})")
    if length % 2:
        raise Refused(f"has the option fft_length = {length}; it must be even")
    try:
        factors(length // 2)
    except ValueError:
        raise Refused(f"has the option fft_length = {length}; half of it must be a product of 2, 3 and 5") from None
    return length


def fft_length(operation: Operation) -> int:
    """Return the length of SignalRfft, which holds the frame. Raises Refused."""
    length = _fft_length(operation)
    if last_axis(operation) > length:
        frames = f"frames of {last_axis(operation)} samples in {named(operation.input(0))}"
        raise Refused(f"has {frames}, more than its fft_length {length}")
    return length


def inverse_length(operation: Operation) -> int:
    """Return the length of SignalIrfft, which fits its spectrum. Raises Refused."""
    length = _fft_length(operation)
    if last_axis(operation) != length + 2:
        needed = f"{length + 2} with its fft_length {length}"
        raise Refused(
            f"has spectra of {last_axis(operation)} numbers in {named(operation.input(0))}; it takes {needed}"
        )
    return length


def _same_output(operation: Operation) -> None:
    output_types(operation, operation.input(0).dtype)


def energy_options(operation: Operation) -> tuple[int, int]:
    """Return start and end of the bins of SignalEnergy. Raises Refused."""
    bins = last_axis(operation) // 2
    options = options_of(operation, {"end_index": (0, bins), "start_index": (0, bins)})
    return options["start_index"], options["end_index"]


def _energies(operation: Operation) -> list[Shape]:
    count = last_axis(operation)
    if count % 2:
        raise Refused(f"reads {count} numbers of {named(operation.input(0))}, an odd number")
    return [(*frames_of(operation), count // 2)]


def _energy(operation: Operation) -> None:
    energy_options(operation)
    output_types(operation, "uint32")


def signal_operator(
    code: str,
    shapes: Callable[[Operation], list[Shape]],
    tensors: Tensors,
    layers: tuple[type[LayerOp], ...],
    check: Callable[[Operation], None],
    limits: str = "",
) -> Operator:
    """Declare an operator that TFLM's interpreter verifies."""
    return Operator(
        f"CUSTOM:Signal{code}",
        shapes,
        tensors,
        quantization=Quantization(scales="any", check=check),
        legalization=Legalization(layers, opaque=True),
        litert=LITERT,
        model=MODELS[code],
        limits=limits,
    )


OPERATORS = (
    signal_operator(
        "Window",
        same_shape,
        Tensors((2, 2), types=("int16",), results=("int16",)),
        (Window,),
        _window,
        "constant weights",
    ),
    signal_operator(
        "FftAutoScale",
        _auto_scaled,
        Tensors((1, 1), (2, 2), types=("int16",), results=("int16", "int32")),
        (ScaleBits, ScaleUp),
        lambda operation: output_types(operation, "int16", "int32"),
    ),
    Operator(
        "CUSTOM:FirmlineFftAutoScale",
        _auto_scaled,
        Tensors((1, 1), (2, 2), types=("int16",), results=("int16", "int32")),
        quantization=Quantization(scales="any", check=lambda operation: output_types(operation, "int16", "int32")),
        legalization=Legalization((ScaleBits, ScaleUp), opaque=True),
        litert=LiteRT(reference=_auto_scale_reference),
        limits="SignalFftAutoScale in which -2^15 does not count, as in microfrontend; its formula is the reference",
    ),
    signal_operator(
        "Rfft",
        lambda operation: [(*frames_of(operation), fft_length(operation) + 2)],
        Tensors(types=("int16", "int32", "float32"), results=("int16", "int32", "float32")),
        (Rfft,),
        _same_output,
        "fft_length is twice a product of 2, 3 and 5",
    ),
    signal_operator(
        "Irfft",
        lambda operation: [(*frames_of(operation), inverse_length(operation))],
        Tensors(types=("int16", "int32", "float32"), results=("int16", "int32", "float32")),
        (Irfft,),
        _same_output,
        "fft_length is twice a product of 2, 3 and 5",
    ),
    signal_operator(
        "Energy",
        _energies,
        Tensors(types=("int16",), results=("uint32",)),
        (Energy,),
        _energy,
        "0 for bins outside of the options (TFLM: unset)",
    ),
)
