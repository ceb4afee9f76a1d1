"""TFLM's signal operators on the channels of a filter bank.

Axes before the last one are frames, in order of time.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.naming import named
from stages.ir.operators.declaration import Tensors
from stages.ir.operators.operation import Operation, Refused, Shape, listed
from stages.ir.operators.signal_options import (
    BOOLEAN,
    NUMBER,
    SHIFT,
    SIZE,
    constant,
    frames_of,
    last_axis,
    options_of,
    output_types,
    same_type,
)
from stages.ir.operators.signal_spectrum import signal_operator
from stages.support.lazy import np

GAINS = 125  # entries of SignalPCAN's table: 3, and 4 for each power of two from 4 on, less 6
_SNR_BITS, _OUTPUT_BITS = 12, 6
_SEGMENTS = 128
_LOGE_2 = 45426  # log(2) * 2^16
CONSTANTS = ("weights", "unweights", "frequency_starts", "weight_starts", "widths")  # inputs 1 to 5 of the filter bank


class FilterBank(LayerOp):
    """SignalFilterBank: weighted sums of energies, modulo 2^64.

    Section s of n + 1 covers widths[s] bins from frequency_starts[s]. Channel c is the sum of section c + 1 with its
    weights and of section c with its unweights; of both, the first is at weight_starts[s].
    """

    op: Literal["signal_filter_bank"] = "signal_filter_bank"
    any_type: ClassVar[bool] = True

    def sections(self, view: LayerView) -> list[tuple[int, Array, Array]]:
        """Return first bin, weights and unweights of each section."""
        weights, unweights, bins, firsts, widths = (view.constant(role) for role in CONSTANTS)
        places = zip(bins, firsts, widths, strict=True)
        return [(int(b), weights[f : f + max(w, 0)], unweights[f : f + max(w, 0)]) for b, f, w in places]

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return uint64 sums."""
        energies = inputs[0].astype(np.uint64)
        sums = np.zeros((2, *energies.shape[:-1], view.outputs[0].shape[-1] + 1), np.uint64)
        for number, (first, *weights) in enumerate(self.sections(view)):
            part = energies[..., first : first + len(weights[0])]
            for way, factors in enumerate(weights):
                sums[way, ..., number] = (part * factors.astype(np.int64).astype(np.uint64)).sum(-1, dtype=np.uint64)
        return sums[0, ..., 1:] + sums[1, ..., :-1]


class SquareRoot(LayerOp):
    """SignalFilterBankSquareRoot: rounded square roots, shifted right by the bits of the frame.

    Numbers below 2^32 have roots of 16 bits: 65535 for those whose root rounds to 65536.
    """

    op: Literal["signal_square_root"] = "signal_square_root"
    alias: ClassVar[str] = "signal_filter_bank_square_root"
    any_type: ClassVar[bool] = True

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return uint32 roots."""

        def root(number: int) -> int:
            floor = math.isqrt(number)
            most = (1 << 16) - 1 if number < 1 << 32 else (1 << 32) - 1
            return min(floor + (number - floor * floor > floor), most)

        x, bits = inputs
        roots = np.array([root(int(number)) for number in x.reshape(-1)], np.uint32).reshape(x.shape)
        return roots >> (bits.astype(np.uint32) & np.uint32(31))[..., None]


class NoiseEstimate(LayerOp):
    """Second output of SignalFilterBankSpectralSubtraction: the noise of each channel.

    The noise is smoothed over time. It is the layer's state. noise = (x << smoothing_bits) * smoothing + noise * rest
    >> bits, modulo 2^32, where `smoothing` and `rest` are those of even and of odd channels; with `clamping` at most x
    << smoothing_bits.
    """

    op: Literal["signal_noise_estimate"] = "signal_noise_estimate"
    alias: ClassVar[str] = "signal_filter_bank_spectral_subtraction"
    any_type: ClassVar[bool] = True
    smoothing: tuple[int, int]
    rest: tuple[int, int]
    smoothing_bits: int
    bits: int
    clamping: bool

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the noise after each frame, and the new state."""
        noise, estimates = states[0].astype(np.uint64), []
        for frame in inputs[0].reshape(-1, inputs[0].shape[-1]):
            signal = (frame << np.uint32(self.smoothing_bits)).astype(np.uint64)
            smoothing, rest = (
                np.resize(np.array(pair, np.uint64), frame.shape) for pair in (self.smoothing, self.rest)
            )
            noise = (signal * smoothing + noise * rest) >> np.uint64(self.bits) & np.uint64(0xFFFFFFFF)
            noise = np.minimum(noise, signal) if self.clamping else noise
            estimates.append(noise.astype(np.uint32))
        return np.stack(estimates).reshape(view.outputs[0].shape), [estimates[-1]]


class SubtractNoise(LayerOp):
    """Output 1 of SignalFilterBankSpectralSubtraction: x - noise, at least a share of x.

    y = max(((x << smoothing_bits) - noise, at least 0) >> smoothing_bits, x * least >> bits)
    """

    op: Literal["signal_subtract_noise"] = "signal_subtract_noise"
    alias: ClassVar[str] = "signal_filter_bank_spectral_subtraction"
    any_type: ClassVar[bool] = True
    smoothing_bits: int
    bits: int
    least: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return y."""
        x, noise = inputs
        signal = x << np.uint32(self.smoothing_bits)
        share = (x.astype(np.uint64) * np.uint64(self.least) >> np.uint64(self.bits)).astype(np.uint32)
        return np.maximum((signal - np.minimum(signal, noise)) >> np.uint32(self.smoothing_bits), share)


class Pcan(LayerOp):
    """SignalPCAN: automatic gain control.

    y = shrink(x * gain(noise) >> snr_shift), all modulo 2^32.
    gain is a quadratic in each octave of the noise, with the coefficients of the constant `gains`; shrink(s) is
    s^2 / 4 for s < 2 and s - 1 from there on, of 12 fractional bits to 6.
    """

    op: Literal["signal_pcan"] = "signal_pcan"
    any_type: ClassVar[bool] = True
    snr_shift: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return y."""
        x, gain = inputs[0].astype(np.uint64), self._gains(view, inputs[1])
        ratio = (x * gain.astype(np.uint32).astype(np.uint64) >> np.uint64(self.snr_shift)).astype(np.uint32)
        square = ratio * ratio >> np.uint32(2 + 2 * _SNR_BITS - _OUTPUT_BITS)
        rest = (ratio >> np.uint32(_SNR_BITS - _OUTPUT_BITS)) - np.uint32(1 << _OUTPUT_BITS)
        return np.where(ratio < 2 << _SNR_BITS, square, rest)

    def _gains(self, view: LayerView, noise: Array) -> Array:
        table = view.constant("gains").astype(np.int64)
        octave = np.frexp(noise.astype(np.float64))[1].astype(np.int64)
        entry = np.where(noise > 2, 4 * octave - 6, 0)
        wide = noise.astype(np.int64)
        place = (wide << np.maximum(11 - octave, 0) >> np.maximum(octave - 11, 0)) & 0x3FF
        slope = (table[np.minimum(entry + 2, GAINS - 1)] * place >> 5) + (table[entry + 1] << 5)
        risen = (slope.astype(np.int32).astype(np.int64) * place + (1 << 14)).astype(np.int32).astype(np.int64) >> 15
        return np.where(noise > 2, risen + table[entry], table[np.minimum(wide, 2)]).astype(np.int16)


class Log(LayerOp):
    """SignalFilterBankLog: y = log(x << correction_bits) * scale, at most 32767; 0 below 2.

    The binary logarithm is interpolated between 128 points of each octave, in 16 fractional bits.
    """

    op: Literal["signal_log"] = "signal_log"
    alias: ClassVar[str] = "signal_filter_bank_log"
    any_type: ClassVar[bool] = True
    scale: int
    correction_bits: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return int16 logarithms."""
        x = (inputs[0] << np.uint32(self.correction_bits)).astype(np.int64)
        octave = np.maximum(np.frexp(x.astype(np.float64))[1].astype(np.int64) - 1, 0)
        place = (x - (1 << octave)) << np.maximum(16 - octave, 0) >> np.maximum(octave - 16, 0)
        table, segment = log_table().astype(np.int64), np.clip(place >> 9, 0, _SEGMENTS - 1)
        first, second = table[segment], table[segment + 1]
        binary = (octave << 16) + place + first + ((second - first) * (place - (segment << 9)) >> 16)
        natural = (_LOGE_2 * binary + (1 << 15)) >> 16
        scaled = ((self.scale * natural + (1 << 15)) & 0xFFFFFFFF) >> 16
        return np.where(x > 1, np.minimum(scaled, (1 << 15) - 1), 0).astype(np.int16)


def log_table() -> Array:
    """Return log2(1 + i / 128) - i / 128 in 16 fractional bits, uint16[130].

    The last entry is for rounding only.
    """
    values = [round((math.log2(1 + i / _SEGMENTS) - i / _SEGMENTS) * (1 << 16)) for i in range(_SEGMENTS + 1)]
    return np.array([*values, 0], np.uint16)


def _bank(operation: Operation) -> list[Shape]:
    channels = options_of(operation, {"num_channels": SIZE})["num_channels"]
    return [(*frames_of(operation), channels)]


def _check_bank(operation: Operation) -> None:
    channels, bins = options_of(operation, {"num_channels": SIZE})["num_channels"], last_axis(operation)
    weights, unweights = constant(operation, 1), constant(operation, 2)
    starts, firsts, widths = (constant(operation, position, channels + 1) for position in (3, 4, 5))
    for number, (start, first, width) in enumerate(zip(*(map(int, x) for x in (starts, firsts, widths)), strict=True)):
        behind = {"bins": (start, bins), "weights": (first, weights.size), "unweights": (first, unweights.size)}
        for what, (begin, count) in behind.items():
            if width > 0 and not 0 <= begin <= begin + width <= count:
                place = f"{what} {begin} to {begin + width - 1}"
                raise Refused(f"reads {place} for section {number}; there are {count}")
    output_types(operation, "uint64")


def _check_root(operation: Operation) -> None:
    same_type(operation, 1, "int32", frames_of(operation))
    output_types(operation, "uint32")


_SUBTRACTION = {
    "alternate_one_minus_smoothing": NUMBER,
    "alternate_smoothing": NUMBER,
    "clamping": BOOLEAN,
    "min_signal_remaining": NUMBER,
    "num_channels": SIZE,
    "one_minus_smoothing": NUMBER,
    "smoothing": NUMBER,
    "smoothing_bits": SHIFT,
    "spectral_subtraction_bits": (0, 63),
}


def _subtracted(operation: Operation) -> list[Shape]:
    channels, shape = options_of(operation, _SUBTRACTION)["num_channels"], operation.input(0).shape
    if last_axis(operation) != channels:
        raise Refused(f"has num_channels = {channels}, but reads {listed(shape)} from {named(operation.input(0))}")
    return [shape, shape]


def subtraction_options(options: dict[str, Any]) -> tuple[NoiseEstimate, SubtractNoise]:
    """Return the layers of SignalFilterBankSpectralSubtraction."""
    bits, smoothing_bits = int(options["spectral_subtraction_bits"]), int(options["smoothing_bits"])
    estimate = NoiseEstimate(
        smoothing=(options["smoothing"], options["alternate_smoothing"]),
        rest=(options["one_minus_smoothing"], options["alternate_one_minus_smoothing"]),
        smoothing_bits=smoothing_bits,
        bits=bits,
        clamping=bool(options["clamping"]),
    )
    return estimate, SubtractNoise(smoothing_bits=smoothing_bits, bits=bits, least=options["min_signal_remaining"])


def _check_pcan(operation: Operation) -> None:
    options_of(operation, {"snr_shift": (0, 63)})
    same_type(operation, 1, "uint32", operation.input(0).shape)
    constant(operation, 2, at_least=GAINS)
    output_types(operation, "uint32")


def _check_log(operation: Operation) -> None:
    options_of(operation, {"input_correction_bits": SHIFT, "output_scale": NUMBER})
    output_types(operation, "int16")


def _same(operation: Operation) -> list[Shape]:
    last_axis(operation)
    return [operation.input(0).shape]


_UINT32 = ("uint32",)
OPERATORS = (
    signal_operator(
        "FilterBank",
        _bank,
        Tensors((6, 6), types=_UINT32, results=("uint64",), apart=(1, 2, 3, 4, 5)),
        (FilterBank,),
        _check_bank,
        "inputs 1 to 5 are constants, int16",
    ),
    signal_operator(
        "FilterBankSquareRoot",
        _same,
        Tensors((2, 2), types=("uint64",), results=_UINT32, apart=(1,)),
        (SquareRoot,),
        _check_root,
        "input 1 is int32, one number for each frame",
    ),
    signal_operator(
        "FilterBankSpectralSubtraction",
        _subtracted,
        Tensors((1, 1), (2, 2), types=_UINT32, results=_UINT32),
        (NoiseEstimate, SubtractNoise),
        lambda operation: None,
        "keeps the noise of each channel",
    ),
    signal_operator(
        "PCAN",
        _same,
        Tensors((3, 3), types=_UINT32, results=_UINT32, apart=(2,)),
        (Pcan,),
        _check_pcan,
        f"input 2 is a constant, int16, of {GAINS} or more",
    ),
    signal_operator("FilterBankLog", _same, Tensors(types=_UINT32, results=("int16",)), (Log,), _check_log),
)
