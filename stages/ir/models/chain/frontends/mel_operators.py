"""Build log_mel and mfcc files: SignalFramer, FirmlineLogMel, FirmlineMelFeatures."""

from itertools import pairwise
from math import log2

import numpy as np

from stages.ir.arrays import Array
from stages.ir.models.builder import Tensor
from stages.ir.models.chain.frontends.base import Features
from stages.ir.models.chain.frontends.mel import LogMel, MelFrontend, Mfcc
from stages.ir.models.chain.frontends.signal_builder import SignalBuilder
from stages.support.messages.stage_error import StageError

_ONE = 1 << 16  # 1 of a logarithm
_MOST_SHIFT, _MOST_BIAS = 46, 1 << 60


def build(options: LogMel | Mfcc, features: Features) -> bytes:
    """Return the TFLite file of the front end."""
    builder = SignalBuilder(features.frames)
    has_previous = options.pre_emphasis > 0  # a frame begins with the sample before it
    frames = builder.framed(options.frame_size + has_previous, options.frame_step)
    spectrum = _log_mel(builder, options, frames)
    transform = cosines(options) if isinstance(options, Mfcc) else None
    builder.output(_features(builder, options, transform, features, spectrum))
    return builder.build()


def cosines(options: Mfcc) -> Array:
    """Return the DCT-II with its lifter, float64[coefficients, mels]."""
    mels = options.mels
    n = np.arange(options.coefficients)
    matrix: Array = 2 * np.cos(np.pi * np.outer(n, 2 * np.arange(mels) + 1) / (2 * mels))
    if options.dct_norm == "ortho":
        matrix *= np.sqrt(0.5 / mels)
        matrix[0] *= np.sqrt(0.5)
    if options.lifter:
        matrix *= (1 + options.lifter / 2 * np.sin(np.pi * (n + 1) / options.lifter)).reshape(-1, 1)
    return matrix


def window(options: MelFrontend) -> Array:
    """Return the window with 30 bits, int32[frame]."""
    size = options.frame_size
    turn = 2 * np.pi * np.arange(size) / max(size - options.symmetric, 1)
    low = {"hann": 0.5, "hamming": 0.54, "none": 1.0}[options.window]
    return np.asarray(np.rint((low - (1 - low) * np.cos(turn)) * 2.0**30), np.int32)


def ramps(options: MelFrontend) -> Array:
    """Return the rising sides' 16-bit weights, int32[bins from the first corner on]."""
    bins, corners = options.first_bins, options.corners
    sides = [
        (np.arange(first, end) - corners[number]) / max(corners[number + 1] - corners[number], 1e-9)
        for number, (first, end) in enumerate(pairwise(bins))
    ]
    return np.asarray(np.clip(np.rint(np.concatenate(sides) * _ONE), 0, _ONE - 1), np.int32)


def _log_mel(builder: SignalBuilder, options: MelFrontend, frames: Tensor) -> Tensor:
    from flatbuffers import flexbuffers

    points, power = log2(options.points), options.power
    sample_unit = log2(options.full_scale) - 15
    unit = power * (points - 13 + sample_unit) - (16 if power == 1 else 0) - (points if options.per_point else 0)
    units = unit + np.log2(options.filter_gains)
    constants = [
        builder.constant("mel/window", window(options)),
        builder.constant("mel/edges", np.array(options.first_bins, np.int32)),
        builder.constant("mel/ramps", ramps(options)),
        builder.constant("mel/bias", np.rint(units * _ONE).astype(np.int32)),
    ]
    if options.offset:
        mantissas, exponents = np.frexp(options.offset * 2.0**-units)
        values = np.minimum(np.rint(mantissas * 2.0**31), 2.0**31 - 1), exponents - 31
        constants.append(builder.constant("mel/offset", np.stack(values).astype(np.int32)))
    fields = {
        "fft_length": options.points,
        "pre_emphasis": round(options.pre_emphasis * (1 << 15)) if options.pre_emphasis else None,
        "power": power,
        "floor": round(log2(options.floor) * _ONE),
    }
    result = builder.rows("log_mel", options.mels, "int32", options.log_factor / _ONE)
    builder.operator("CUSTOM:FirmlineLogMel", [frames, *constants], [result], custom=bytes(flexbuffers.Dumps(fields)))
    return result


def _features(
    builder: SignalBuilder, options: MelFrontend, transform: Array | None, wanted: Features, spectrum: Tensor
) -> Tensor:
    """Append the transform and the conversion to the wanted type."""
    factors = (np.ones((options.mels, 1)) if transform is None else transform) * options.log_factor
    std = np.broadcast_to(np.array(options.std), len(factors))
    mean = np.broadcast_to(np.array(options.mean), len(factors)) / std
    factors = factors / std[:, None]
    dtype = "int16" if wanted.dtype == "float32" else wanted.dtype
    scale, zero_point = wanted.scale, wanted.zero_point
    if scale is None:
        scale, zero_point = _quantization(options, factors, mean, dtype)
    scale = float(np.float32(scale))
    constants = _tables(factors / scale / _ONE, zero_point - mean / scale)
    result = builder.tensor("features", (*builder.leading, len(factors)), dtype, scale, zero_point)
    tensors = [builder.constant(f"features/{name}", values) for name, values in constants.items()]
    builder.operator("CUSTOM:FirmlineMelFeatures", [spectrum, *tensors], [result])
    return builder.dequantize(result, name="features/float32") if wanted.dtype == "float32" else result


def _tables(factors: Array, bias: Array) -> dict[str, Array]:
    """Return 16-bit weights, biases that include half for rounding, and shifts.

    Raises StageError for a bad scale.
    """
    largest = np.abs(factors).max(axis=1)
    shift = np.minimum(np.floor(np.log2(32767 / np.maximum(largest, 1e-30))), _MOST_SHIFT).astype(np.int64)
    scaled = np.rint(bias * 2.0**shift) + 2.0 ** (shift - 1)
    if (shift < 1).any() or (np.abs(scaled) > _MOST_BIAS).any():
        raise StageError("the features' mean, std and scale differ too much in magnitude for 64-bit sums")
    weights = np.rint(factors * 2.0 ** shift[:, None]).astype(np.int16)
    return {"weights": weights, "bias": scaled.astype(np.int64), "right_shift": shift.astype(np.int32)}


def _quantization(options: MelFrontend, factors: Array, mean: Array, dtype: str) -> tuple[float, int]:
    """Return scale and zero point for all possible features.

    The range is from log(floor or offset) to the logarithm of a full-scale signal.
    """
    if dtype not in ("int8", "uint8", "int16"):
        raise StageError(f"features cannot be {dtype}; they are int8, uint8, int16 or float32")
    least = log2(max(options.floor, options.offset))
    amplitude = options.full_scale * (1 + options.pre_emphasis) * options.frame_size
    wide = max(high - low for low, high in zip(options.first_bins, options.first_bins[2:], strict=False))
    most = max(
        least,
        options.power * log2(amplitude)
        + log2(wide * max(options.filter_gains))
        - (log2(options.points) if options.per_point else 0),
    )
    ends = np.stack([np.minimum(factors * least, factors * most), np.maximum(factors * least, factors * most)])
    low, high = ends.sum(axis=2) - mean
    if dtype == "int16":
        return max(abs(low.min()), abs(high.max()), 1e-6) / 32767, 0
    scale = max(high.max() - low.min(), 1e-6) / 255
    return scale, (-128 if dtype == "int8" else 0) + int(np.clip(round(-low.min() / scale), 0, 255))
