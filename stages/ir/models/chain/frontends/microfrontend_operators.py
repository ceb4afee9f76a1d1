"""The operators of microfrontend, from samples to features."""

from typing import Any

import numpy as np

from stages.ir.models.builder import Tensor
from stages.ir.models.chain.frontends.base import Features
from stages.ir.models.chain.frontends.microfrontend import MicroFrontend, NoiseReduction
from stages.ir.models.chain.frontends.microfrontend_tables import WINDOW_BITS, filter_bank, gains, window
from stages.ir.models.chain.frontends.signal_builder import SignalBuilder
from stages.support.messages.stage_error import StageError

_FEATURE_SCALE = 0.0390625  # 1 / 25.6, with the default log_shift
_DEFAULT_LOG_SHIFT = 6
_NOISE_BITS = 14
_LARGEST_SIGNAL = 65535.0
_INT16 = 7  # code of the type of Rfft's samples
# Networks with an input scale in this range and zero point -128 are trained with TFLM's conversion to int8.
_TFLM_SCALES = (0.1014, 0.1021)


def build(options: MicroFrontend, features: Features) -> bytes:
    """Return the TFLite file of the front end."""
    b = SignalBuilder(features.frames)
    signal = _signal(b, options)
    if options.log:
        b.output(_converted(b, _logarithms(b, options, signal), features, options.conversion))
    else:
        b.output(_quantized(b, _clipped(b, signal, options.out_scale), features))
    return b.build()


def _signal(b: SignalBuilder, options: MicroFrontend) -> Tensor:
    """Append the operators up to the amplitudes of the channels, uint32[(frames,) channels]."""
    size, channels, fft_length = options.frame_size, options.channels, options.fft_length
    bank = filter_bank(channels, options.lower_hz, options.upper_hz, options.sample_rate, fft_length)
    bins = fft_length // 2 + 1
    frames = b.framed(size, options.frame_step)
    shape = b.constant("window", window(size))
    windowed = b.signal("Window", [frames, shape], [b.rows("windowed", size, "int16")], shift=WINDOW_BITS)
    bits = b.tensor("scaled/bits", b.leading, "int32")
    scaled = b.rows("scaled", size, "int16")
    b.operator("CUSTOM:FirmlineFftAutoScale", [windowed], [scaled, bits])
    spectrum = b.rows("spectrum", 2 * bins, "int16")
    b.signal("Rfft", [scaled], [spectrum], T=_INT16, fft_length=fft_length)
    energy = b.rows("energy", bins, "uint32")
    b.signal("Energy", [spectrum], [energy], start_index=bank.start, end_index=bank.end)
    tables = [b.constant(f"filters/{name}", values) for name, values in bank.tables.items()]
    sums = b.signal("FilterBank", [energy, *tables], [b.rows("sums", channels, "uint64")], num_channels=channels)
    roots = b.signal("FilterBankSquareRoot", [sums, bits], [b.rows("roots", channels, "uint32")])
    noise, signal = b.rows("noise", channels, "uint32"), b.rows("reduced", channels, "uint32")
    reduction = _reduction(options.noise_reduction)
    b.signal("FilterBankSpectralSubtraction", [roots], [signal, noise], num_channels=channels, **reduction)
    if options.pcan:
        pcan, point = options.pcan, options.noise_reduction.smoothing_bits - options.correction_bits
        table = b.constant("gains", gains(pcan.strength, pcan.offset, pcan.gain_bits, point))
        amplified = b.rows("amplified", channels, "uint32")
        signal = b.signal("PCAN", [signal, noise, table], [amplified], snr_shift=options.snr_shift(pcan))
    return signal


def _logarithms(b: SignalBuilder, options: MicroFrontend, signal: Tensor) -> Tensor:
    """Append the logarithm: features in int16."""
    scale = _FEATURE_SCALE * 2.0 ** (_DEFAULT_LOG_SHIFT - options.log_shift)
    log_options = {"input_correction_bits": options.correction_bits, "output_scale": 1 << options.log_shift}
    logarithms = b.rows("logarithms", options.channels, "int16", scale)
    return b.signal("FilterBankLog", [signal], [logarithms], **log_options)


def _clipped(b: SignalBuilder, signal: Tensor, out_scale: float) -> Tensor:
    """Append min(signal, 65535) / out_scale: features in float32.

    As the C front end without its logarithm.
    """
    x = b.tensor("signal/float32", signal.shape, "float32")
    b.operator("CAST", [signal], [x])
    for op, value in (("MINIMUM", _LARGEST_SIGNAL), ("DIV", out_scale)):
        if value == 1:
            continue
        options = "MaximumMinimumOptions" if op == "MINIMUM" else "DivOptions"
        constant = b.constant(f"signal/{op.lower()}/value", np.array([value], np.float32))
        result = b.tensor(f"signal/{op.lower()}", x.shape, "float32")
        b.operator(op, [x, constant], [result], options)
        x = result
    return x


def _quantized(b: SignalBuilder, features: Tensor, wanted: Features) -> Tensor:
    """Append the quantization of float features; floats remain if no integers are wanted."""
    if wanted.dtype == "float32" or wanted.scale is None:
        return features
    return b.quantize(features, wanted.dtype, (wanted.scale, wanted.zero_point), name="features")


def _reduction(options: NoiseReduction) -> dict[str, Any]:
    one = 1 << _NOISE_BITS

    def fixed(value: float) -> int:
        return int(np.float32(value) * np.float32(one))

    even, odd = fixed(options.even_smoothing), fixed(options.odd_smoothing)
    return {
        "smoothing": even,
        "one_minus_smoothing": one - even,
        "alternate_smoothing": odd,
        "alternate_one_minus_smoothing": one - odd,
        "min_signal_remaining": fixed(options.min_signal_remaining),
        "smoothing_bits": options.smoothing_bits,
        "spectral_subtraction_bits": _NOISE_BITS,
        "clamping": False,
    }


def _converted(b: SignalBuilder, logarithms: Tensor, features: Features, conversion: str) -> Tensor:
    """Append the conversion of int16 features to the wanted type."""
    if features.dtype == "int16" and features.scale in (None, logarithms.scale[0]) and not features.zero_point:
        return logarithms
    if features.dtype == "float32":
        return b.dequantize(logarithms, name="features")
    if features.scale is None:
        raise StageError(f"microfrontend cannot compute {features.dtype} features without a scale")
    low, high = _TFLM_SCALES
    fits = features.dtype == "int8" and features.zero_point == -128 and low <= features.scale <= high
    if conversion == "tflm" and not fits:
        quantization = f"{features.dtype}, scale {features.scale:g}, zero point {features.zero_point}"
        raise StageError(
            f"`conversion: tflm` gives int8 of scale 0.102 and zero point -128; the network reads {quantization}",
            hint="conversion: scale",
        )
    if conversion == "scale" or not fits:
        return b.quantize(logarithms, features.dtype, (features.scale, features.zero_point), name="features")
    return _tflm_int8(b, logarithms, features.scale)


def _tflm_int8(b: SignalBuilder, features: Tensor, scale: float) -> Tensor:
    """Append (256 f + 333) / 666 - 128, as TFLM and micro wake word convert features."""
    x = b.tensor("features/int32", features.shape, "int32")
    b.operator("CAST", [features], [x])
    for op, value in (("MUL", 256), ("ADD", 333), ("DIV", 666), ("ADD", -128), ("MINIMUM", 127), ("MAXIMUM", -128)):
        options = "MaximumMinimumOptions" if op in ("MINIMUM", "MAXIMUM") else f"{op.capitalize()}Options"
        constant = b.constant(f"features/{value}", np.array([value], np.int32))
        result = b.tensor(f"features/{op.lower()}", x.shape, "int32")
        b.operator(op, [x, constant], [result], options)
        x = result
    result = b.tensor("features", x.shape, "int8", scale, -128)
    b.operator("CAST", [x], [result])
    return result
