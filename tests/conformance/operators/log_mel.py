"""Cases of log-mel spectra and their features."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from stages.ir.graph import LayerView
from stages.ir.operators.log_mel import LogMelSpectrum, MelFeatures
from tests.conformance.case import Case, Inputs, drawn_inputs
from tests.conformance.draw import Draw, bounds, image, view

BITS = 0
OPS = ("log_mel", "mel_features")


def log_mel(draw: Draw, fft_length: int, frame: int, mels: int, power: int, **fields: Any) -> LayerView:
    """Any window, any rising edges, any weights."""
    emphasized, has_offset = fields.get("emphasized", False), fields.get("has_offset", False)
    op = LogMelSpectrum(
        fft_length=fft_length,
        pre_emphasis=draw.choose(0, 31785, 32768) if emphasized else None,
        power=power,  # type: ignore[arg-type]
        floor=draw.choose(-(1 << 30), -20 * 65536, 0),
    )
    edges = np.sort(draw.rng.integers(1, fft_length // 2 + 1, mels + 2)).astype(np.int32)
    constants = {
        "window": draw.rng.integers(draw.choose(0, -(1 << 30)), (1 << 30) + 1, frame).astype(np.int32),
        "edges": edges,
        "ramps": draw.rng.integers(0, 1 << 16, edges[-1] - edges[0]).astype(np.int32),
        "bias": draw.rng.integers(-(1 << 21), 1 << 21, mels).astype(np.int32),
    }
    if has_offset:
        constants["offset"] = np.stack([draw.rng.integers(0, 1 << 31, mels), draw.rng.integers(-70, 70, mels)]).astype(
            np.int32
        )
    frames = (*draw.choose((), (1,), (2,), (1, 3)), frame + emphasized)
    return view(op, [image("x", frames, "int16")], image("y", (*frames[:-1], mels), "int32"), constants)


def features(draw: Draw, mels: int, channels: int, dtype: str, *, diagonal: bool = False) -> LayerView:
    """Shifts that spread sums over the output's range and beyond."""
    low, high = bounds(dtype)
    depth = 1 if diagonal else mels
    channels = mels if diagonal else channels
    shift = draw.rng.integers(1, 40, channels)
    constants = {
        "weights": draw.array((channels, depth), "int16"),
        "bias": draw.rng.integers(-(1 << 36), 1 << 36, channels),
        "right_shift": shift.astype(np.int32),
    }
    frames = draw.choose((), (1,), (3,))
    op = MelFeatures(low=low, high=high)
    return view(op, [image("x", (*frames, mels), "int32")], image("y", (*frames, channels), dtype), constants)


def inputs(draw: Draw, layer: LayerView) -> tuple[Inputs, ...]:
    """Noise, weak noise, one sample, and the extremes."""
    (x,) = layer.inputs
    if x.dtype != "int16":
        return drawn_inputs(draw, layer)
    weak, single = draw.rng.integers(-3, 4, x.shape), np.zeros(x.shape)
    single[..., -1] = 1
    return (*drawn_inputs(draw, layer), (weak.astype(np.int16),), (single.astype(np.int16),))


def drawn(draw: Draw) -> LayerView:
    if draw.integer(0, 3) == 0:
        dtype = draw.choose("int8", "uint8", "int16")
        return features(draw, draw.integer(1, 40), draw.integer(1, 14), dtype, diagonal=draw.choose(True, False))
    length = draw.choose(16, 32, 64, 128, 256, 512, 1024, 2048)
    frame = draw.integer(1, length)
    options = {"emphasized": draw.choose(True, False), "has_offset": draw.choose(True, False)}
    return log_mel(draw, length, frame, draw.integer(1, 12), draw.choose(1, 2), **options)


def mandatory() -> Iterator[Case]:
    """Every function, both first radices, frames that end within a pair of samples."""
    for number in range(16):
        draw = Draw(number)
        options = {"emphasized": bool(number & 1), "has_offset": bool(number & 2)}
        length = (16, 32, 64, 128)[number % 4]
        layer = log_mel(draw, length, length - number % 3, draw.integer(1, 9), 1 + (number >> 2) % 2, **options)
        yield Case(f"log_mel {number}", ("extremes",), layer, inputs(draw, layer))
    for number, dtype in enumerate(("int8", "uint8", "int16") * 4):
        draw = Draw(number)
        layer = features(draw, draw.integer(1, 20), draw.integer(1, 9), dtype, diagonal=number % 2 == 0)
        yield Case(f"mel_features {dtype} {number}", ("extremes",), layer, inputs(draw, layer))
