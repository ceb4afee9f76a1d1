"""Cases of TFLM's signal operators without memory: spectra, filter banks, and what is done to channels."""

from collections.abc import Iterator

import numpy as np

from stages.ir.graph import LayerView
from stages.ir.operators.signal_filter_bank import (
    GAINS,
    FilterBank,
    Log,
    NoiseEstimate,
    Pcan,
    SquareRoot,
    SubtractNoise,
)
from stages.ir.operators.signal_spectrum import Energy, Irfft, Rfft, ScaleBits, ScaleUp, Window
from tests.conformance.case import Case, Inputs
from tests.conformance.draw import Draw, bounds, image, view

OPS = (
    "signal_window",
    "signal_scale_bits",
    "signal_scale_up",
    "signal_rfft",
    "signal_irfft",
    "signal_energy",
    "signal_filter_bank",
    "signal_square_root",
    "signal_noise_estimate",
    "signal_subtract_noise",
    "signal_pcan",
    "signal_log",
)
BITS = 0
# Halves with each radix, in first and later stages.
LENGTHS = (4, 6, 10, 16, 30, 50, 64, 90, 480, 512)


def signals(draw: Draw, shape: tuple[int, ...], dtype: str) -> list[np.ndarray]:
    """Silence, full scale of both signs, turns of it, impulses, a sine, noise of any volume, and a turning square.

    Spectra of the square have parts beyond the range of the type, which wrap.
    """
    if dtype == "float32":
        noise = draw.rng.normal(size=shape)
        return [np.zeros(shape, np.float32), noise.astype(np.float32), (noise * 1e5).astype(np.float32)]
    low, high = bounds(dtype)
    ends = np.array([low, high], dtype)
    noise = draw.rng.integers(low, high, shape, dtype, endpoint=True)
    impulses = np.where(draw.rng.integers(0, 20, shape) == 0, noise, 0)
    parity = np.indices(shape)[-1] % 2
    sine = np.sin(np.indices(shape)[-1] * 0.7) * min(high, 1 << 30)
    pair = np.indices(shape)[-1] // 2
    square = ends[(pair + 2 * parity) % 8 // 4]
    constant = [np.zeros(shape), np.full(shape, low, dtype), np.full(shape, high, dtype)]
    shapes = [*constant, ends[parity], square, impulses, noise]
    volumes = [noise >> dtype_bits for dtype_bits in range(2, np.dtype(dtype).itemsize * 8, 5)]
    return [array.astype(dtype) for array in (*shapes, *(sine,) * (low < 0), *volumes, draw.rng.choice(ends, shape))]


def inputs(draw: Draw, layer: LayerView) -> tuple[Inputs, ...]:
    """Each signal of the first input, beside any of the others; bits of frames are below 32."""
    first, *others = layer.inputs
    runs = []
    for x in signals(draw, first.shape, first.dtype):
        beside = []
        for tensor in others:
            if tensor.dtype == "int32":
                bits = draw.rng.integers(0, 16 if layer.op.op == "signal_scale_up" else 32, tensor.shape)
                beside.append(bits.astype(np.int32))
            else:
                beside.append(draw.choose(*signals(draw, tensor.shape, tensor.dtype)))
        runs.append((x, *beside))
    return tuple(runs)


def fft(frames: tuple[int, ...], samples: int, length: int, dtype: str, *, inverse: bool = False) -> LayerView:
    if inverse:
        ends = image("x", (*frames, length + 2), dtype), image("y", (*frames, length), dtype)
        return view(Irfft(length=length), [ends[0]], ends[1])
    ends = image("x", (*frames, samples), dtype), image("y", (*frames, length + 2), dtype)
    return view(Rfft(length=length), [ends[0]], ends[1])


def of_samples(draw: Draw, op: str, frames: tuple[int, ...], size: int) -> LayerView:
    """A window, a scaling or energies of frames of this size."""
    x, bits = image("x", (*frames, size), "int16"), image("b", frames, "int32")
    if op == "signal_window":
        constants = {"weights": draw.array((size,), "int16")}
        return view(Window(shift=draw.integer(0, 31)), [x], image("y", x.shape, "int16"), constants)
    if op == "signal_scale_bits":
        return view(ScaleBits(), [x], bits)
    if op == "signal_scale_up":
        return view(ScaleUp(), [x, bits], image("y", x.shape, "int16"))
    start = draw.integer(0, size)
    pairs = image("x", (*frames, 2 * size), "int16")
    op_of_energy = Energy(start=start, end=draw.integer(start, size))
    return view(op_of_energy, [pairs], image("y", (*frames, size), "uint32"))


def filter_bank(draw: Draw, frames: tuple[int, ...], bins: int, channels: int) -> LayerView:
    """Sections of up to 9 bins anywhere; weights are as in TFLM, or any of int16."""
    widths = draw.rng.integers(0, min(9, bins) + 1, channels + 1)
    firsts = np.cumsum(widths) - widths
    high = draw.choose(1 << 12, 1 << 12, 1 << 15)
    low = -high if high > 1 << 12 else 0
    weights = draw.rng.integers(low, high, (2, max(int(widths.sum()), 1))) * draw.rng.integers(0, 2, (1,))
    arrays = (*weights, draw.rng.integers(0, bins - widths + 1), firsts, widths)
    names = ("weights", "unweights", "frequency_starts", "weight_starts", "widths")
    constants = {name: array.astype(np.int16) for name, array in zip(names, arrays, strict=True)}
    x, y = image("x", (*frames, bins), "uint32"), image("y", (*frames, channels), "uint64")
    return view(FilterBank(), [x], y, constants)


def of_channels(draw: Draw, op: str, frames: tuple[int, ...], channels: int) -> LayerView:
    """What follows the filter bank."""
    shape, any_number = (*frames, channels), (1 << 31) - 1
    x, y = image("x", shape, "uint32"), image("y", shape, "uint32")
    smoothing_bits, bits = draw.choose((10, 14), (draw.integer(0, 31), draw.integer(0, 63)))
    if op == "signal_square_root":
        return view(SquareRoot(), [image("x", shape, "uint64"), image("b", frames, "int32")], y)
    if op == "signal_noise_estimate":
        factors = [(draw.integer(0, any_number), draw.integer(0, any_number)) for _ in range(2)]
        smoothing, rest = draw.choose(((409, 983), (15975, 15401)), tuple(factors))
        clamping = bool(draw.integer(0, 1))
        fields = {"smoothing_bits": smoothing_bits, "bits": bits, "clamping": clamping}
        op_of_noise = NoiseEstimate(smoothing=smoothing, rest=rest, **fields)
        return view(op_of_noise, [x], y, state=(image("s", (channels,), "uint32"),))
    if op == "signal_subtract_noise":
        least = draw.choose(819, draw.integer(0, any_number))
        return view(
            SubtractNoise(smoothing_bits=smoothing_bits, bits=bits, least=least), [x, image("n", shape, "uint32")], y
        )
    if op == "signal_pcan":
        constants = {"gains": draw.array((GAINS + draw.integer(0, 3),), "int16")}
        return view(Pcan(snr_shift=draw.choose(6, draw.integer(0, 63))), [x, image("n", shape, "uint32")], y, constants)
    scale, correction_bits = draw.choose((64, 3), (draw.integer(0, any_number), draw.integer(0, 31)))
    return view(Log(scale=scale, correction_bits=correction_bits), [x], image("y", shape, "int16"))


def layer_of(draw: Draw, op: str, frames: tuple[int, ...], size: int) -> LayerView:
    """The operator on frames of about this size."""
    if op in ("signal_rfft", "signal_irfft"):
        length = draw.choose(*(length for length in LENGTHS if length <= max(size, 4)))
        dtype = draw.choose("int16", "int16", "int32", "float32")
        return fft(frames, draw.integer(1, length), length, dtype, inverse=op == "signal_irfft")
    if op == "signal_filter_bank":
        return filter_bank(draw, frames, size, draw.integer(1, 40))
    if op in ("signal_window", "signal_scale_bits", "signal_scale_up", "signal_energy"):
        return of_samples(draw, op, frames, size)
    return of_channels(draw, op, frames, size)


def drawn(draw: Draw) -> LayerView:
    frames = draw.choose((), (1,), (draw.integer(2, 3),), (2, 2))
    return layer_of(draw, draw.choose(*OPS), frames, draw.integer(1, 70))


def mandatory() -> Iterator[Case]:
    for number, length in enumerate(LENGTHS):
        for dtype in ("int16", ("int32", "float32")[number % 2]):
            draw = Draw(length)
            for layer in (
                fft((2,), length - length // 4 - length % 3 if number % 3 else length, length, dtype),
                fft((2,), 0, length, dtype, inverse=True),
            ):
                title = f"{layer.op.op} {dtype} {length} of {layer.inputs[0].shape}"
                yield Case(title, ("shapes", "extremes"), layer, inputs(draw, layer))
    for op in OPS:
        if not op.endswith("fft"):
            for number, (frames, size) in enumerate([((), 1), ((), 40), ((1,), 33), ((3,), 7), ((2, 2), 5), ((), 480)]):
                draw = Draw(number)
                layer = layer_of(draw, op, frames, size)
                yield Case(f"{op} {frames} {size}", ("shapes", "extremes"), layer, inputs(draw, layer))
    for part in (_roots, _powers_of_two, _windows):
        yield from part()


def _powers_of_two() -> Iterator[Case]:
    """Frames as long as the FFT, frames that fill at least three quarters of it, and shorter ones."""
    single = ((480, 512), (512, 512), (320, 512), (240, 256), (256, 256), (100, 128), (127, 128), (51, 64), (24, 32))
    for frames, (samples, length) in [*(((), sizes) for sizes in single), ((2,), (480, 512)), ((3,), (51, 64))]:
        layer = fft(frames, samples, length, "int16")
        title = f"signal_rfft {frames} {samples} of {length}"
        yield Case(title, ("shapes", "extremes"), layer, inputs(Draw(samples), layer))


def _windows() -> Iterator[Case]:
    """Weights of at most 1: rising and falling, all 1, apart by 1, below 0, and at both ends of the range."""
    for number, (frames, size) in enumerate([((), 480), ((2,), 32), ((3,), 33), ((), 7)]):
        for shift in (12, 14, 15):
            most = min(1 << shift, (1 << 15) - 1)
            hann = np.round(most * np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2)
            ones, both = np.full(size, most), np.where(np.arange(size) % 3 == 0, most, 1 - most)
            for name, weights in {"hann": hann, "ones": ones, "both": both, "below": -hann}.items():
                x = image("x", (*frames, size), "int16")
                y = image("y", x.shape, "int16")
                layer = view(Window(shift=shift), [x], y, {"weights": weights.astype(np.int16)})
                title = f"signal_window {name} {frames} {size} {shift}"
                yield Case(title, ("shapes", "extremes"), layer, inputs(Draw(number), layer))


def _roots() -> Iterator[Case]:
    """Numbers beside squares, and beside the squares of halves where a root is rounded."""
    draw = Draw(0)
    roots = np.concatenate([draw.rng.integers(0, 1 << bits, 20) for bits in range(1, 33)]).astype(np.uint64)
    roots = np.concatenate([roots, [0xFFFF, 0xFFFFFFFF]]).astype(np.uint64)
    numbers = np.concatenate(
        [roots * roots + np.uint64(1) * near for near in (0, 1)]
        + [roots * roots + roots, roots * roots + roots + np.uint64(1), roots * roots - np.uint64(1)]
    )
    x = numbers.astype(np.uint64)
    layer = view(SquareRoot(), [image("x", x.shape, "uint64"), image("b", (), "int32")], image("y", x.shape, "uint32"))
    yield Case("signal_square_root beside squares", ("shapes", "extremes"), layer, ((x, np.array(0, np.int32)),))
