"""Jobs of NE16 with tensors in L1, drawn, and what they compute by definition: a convolution over a padded image."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.backends.accelerators.ne16.extension import Parameters, Residual
from stages.backends.accelerators.ne16.job import Extension, Job, Mode, Padding
from stages.backends.accelerators.ne16.packing import pack
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.ir.layers import Rounding

Array = npt.NDArray[Any]
L1, L1_BYTES = 0x1000_0000, 128 << 10


@dataclass(frozen=True)
class LaidOut:
    """A job, the bytes of L1 before it runs, and the tensors in them: x HWC, w OHWI or HWC, one value per channel."""

    job: Job
    l1: bytes
    x: Array
    w: Array
    scale: Array
    shift: Array
    bias: Array
    start: Array
    residual: Array
    parameters: Parameters

    @property
    def output_shape(self) -> tuple[int, int, int]:
        return self.job.h_out, self.job.w_out, self.job.ko

    def after(self) -> bytes:
        """L1 when the job is done."""
        job, size = self.job, self.job.output_bits // 8
        l1 = np.frombuffer(bytearray(self.l1), np.uint8)
        y, x, c = np.ix_(*map(np.arange, self.output_shape))
        address = job.output - L1 + y * job.output_row + x * job.output_pixel + c * size
        values = self._extended() if job.extension and job.extension.parameters else self._normalized()
        l1[address[..., np.newaxis] + np.arange(size)] = values[..., np.newaxis] >> 8 * np.arange(size) & 0xFF
        return l1.tobytes()

    def _normalized(self) -> Array:
        """In Python's integers of any size: sums and products wrap, shifts floor, outputs saturate."""
        job, found = self.job, np.zeros(self.output_shape, np.int64)
        for index, total in np.ndenumerate(self.sums()):
            channel, value = index[2], _wrapped(int(total), 32)
            if job.scale is not None:
                value *= int(self.scale[channel])
                if job.bias is None:
                    value = _wrapped(value, 48)
                else:
                    value = _wrapped(_wrapped(value, 32) + int(self.bias[channel]), 32)
                value >>= int(self.shift[channel])
                if job.output_bits == 8:
                    value = max(-128, min(127, value)) if job.signed else max(0, min(255, value))
                elif not job.signed:
                    value = max(value, 0)
                elif job.shifts is not None or job.shift:
                    value = max(-(1 << 31), min((1 << 31) - 1, value))
            found[index] = _wrapped(value, 32)
        return found

    def _extended(self) -> Array:
        """As TFLite rounds, and adds the residual."""
        extension, given = self.job.extension, self.parameters
        assert extension is not None
        rounding: Rounding = "single" if extension.rounds_once else "double"
        values = multiply_by_quantized_multiplier(self.sums() + self.bias, self.scale, self.shift, rounding)
        values = np.clip(values + given.zero_point, given.minimum, given.maximum)
        if add := given.residual:
            own, other = (values - given.zero_point) << 20, (self.residual - add.zero_point) << 20
            own = multiply_by_quantized_multiplier(own, add.own_multiplier, add.own_shift, "double")
            other = multiply_by_quantized_multiplier(other, add.multiplier, add.shift, "double")
            values = multiply_by_quantized_multiplier(own + other, add.total_multiplier, add.total_shift, "double")
            values = np.clip(values + add.output_zero_point, add.minimum, add.maximum)
        return values

    def sums(self) -> Array:
        """The sums before normalization, as int64: by definition, tap by tap."""
        job = self.job
        size, stride, pad = job.kernel, job.stride, job.padding
        h, w = ((n - 1) * stride + size for n in (job.h_out, job.w_out))
        image = np.full((h, w, job.ki), job.pad_value, np.int64)
        image[pad.top : h - pad.bottom, pad.left : w - pad.right] = self.x
        total = self.start.astype(np.int64).copy()
        for ky in range(size):
            for kx in range(size):
                part = image[ky : ky + (job.h_out - 1) * stride + 1 : stride]
                part = part[:, kx : kx + (job.w_out - 1) * stride + 1 : stride]
                if job.mode == "depthwise3x3":
                    total += part * self.w[ky, kx]
                else:
                    total += np.einsum("yxi,oi->yxo", part, self.w[:, ky, kx].astype(np.int64))
        return total


def _wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


class _Bump:
    """Puts tensors into L1, one after the other."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.bytes = bytearray(rng.integers(0, 256, L1_BYTES, np.uint8).tobytes())
        self.at = 0

    def room(self, size: int, alignment: int = 4) -> int:
        self.at = -(-self.at // alignment) * alignment
        address = self.at
        self.at += size
        assert self.at <= L1_BYTES, "the drawn job does not fit L1"
        return L1 + address

    def put(self, data: bytes) -> int:
        address = self.room(len(data))
        self.bytes[address - L1 : address - L1 + len(data)] = data
        return address

    def tensor(self, values: Array, row: int, pixel: int) -> int:
        """An HWC tensor with its strides in bytes."""
        height, width, channels = values.shape
        size = values.dtype.itemsize
        address = self.room((height - 1) * row + (width - 1) * pixel + channels * size)
        for y in range(height):
            for x in range(width):
                at = address - L1 + y * row + x * pixel
                self.bytes[at : at + channels * size] = values[y, x].tobytes()
        return address


def laid_out(seed: int, mode: Mode, **given: Any) -> LaidOut:
    """A job of the mode; what is not given is drawn.

    Sizes: h_out, w_out, ki, ko. `bits`, `stride`, `padding`, `pad_value`, `output_bits`, `signed`, `scale_bits` (0: raw
    sums), `per_channel`, `bias`, `stream_in`, `gap` (bytes between pixels and rows beside the tensor), `tflite`,
    `rounds_once`, `residual`, `signed_input`.
    """
    rng = np.random.default_rng(seed)

    def choice(name: str, options: list[Any]) -> Any:
        drawn = options[int(rng.integers(len(options)))]
        return given.get(name, drawn)

    kernel = 1 if mode == "conv1x1" else 3
    stride = choice("stride", [1, 1, 2])
    tflite = choice("tflite", [False])
    h, w = choice("h_out", list(range(1, 9))), choice("w_out", list(range(1, 9)))
    ki, ko = choice("ki", [1, 3, 16, 17, 35, 48]), choice("ko", [1, 8, 32, 33, 41, 64])
    if mode == "depthwise3x3":
        ko = ki
    bits = choice("bits", list(range(2, 9)))
    scale_bits = 32 if tflite else choice("scale_bits", [8, 16, 32, 0])
    output_bits = 32 if not scale_bits else 8 if tflite else choice("output_bits", [8, 8, 32])
    stream_in = choice("stream_in", [False, False, True]) and mode != "depthwise3x3" and not tflite
    if stream_in and output_bits != 32:
        ko = min(ko, 32)
    bias = bool(tflite or (scale_bits and choice("bias", [True, False])))
    per_channel = bool(tflite or (scale_bits and choice("per_channel", [True, False])))
    per_channel = per_channel and (bias or scale_bits != 16)
    signed, signed_input = choice("signed", [False, True]), choice("signed_input", [False])
    heights, widths = ((n - 1) * stride + kernel for n in (h, w))
    limit = 2 if kernel == 3 else 0
    edges = [int(n) for n in rng.integers(0, limit + 1, 4)]
    padding = Padding(*given.get("padding", edges))
    if padding.top + padding.bottom >= heights:
        padding = padding._replace(bottom=0)
    if padding.left + padding.right >= widths:
        padding = padding._replace(right=0)
    pad_value = choice("pad_value", [0, 128, 255] if not signed_input else [0, -128, 127])
    pad_value = pad_value if any(padding) else 0
    offset = choice("offset", [-(1 << bits - 1), 0, -7])

    l1 = _Bump(rng)
    low = -128 if signed_input else 0
    heights, widths = heights - padding.top - padding.bottom, widths - padding.left - padding.right
    x = rng.integers(low, low + 256, (heights, widths, ki))
    shape = (3, 3, ki) if mode == "depthwise3x3" else (ko, kernel, kernel, ki)
    weights = rng.integers(offset, offset + (1 << bits), shape)
    gap = choice("gap", [0, 0, 2, 6])
    in_pixel = ki + gap
    in_row = x.shape[1] * in_pixel + gap
    size = output_bits // 8
    # Sums that are streamed into narrower outputs lie 4 bytes apart.
    out_pixel = (4 if stream_in else size) * ko + gap
    out_pixel += out_pixel % 2 if stride == 2 else 0
    out_row = w * out_pixel + gap
    start = rng.integers(-(1 << 20), 1 << 20, (h, w, ko)) if stream_in else np.zeros((h, w, ko), np.int64)
    spread = 255 * (1 << bits) * ki * kernel**2 / 8
    parameters, extra = _parameters(rng, signed), None
    residual = np.zeros((h, w, ko), np.int64)
    at_input = l1.tensor(x.astype(np.int8 if signed_input else np.uint8), in_row, in_pixel)
    at_output = l1.room((h - 1) * out_row + (w - 1) * out_pixel + 4 * ko)
    if stream_in:
        here = l1.at
        l1.at = at_output - L1
        l1.tensor(start.astype("<i4"), out_row, out_pixel)
        l1.at = here
    if tflite:
        scale = rng.integers(1 << 30, 1 << 31, ko)
        shift = rng.integers(-2, 3, ko) - int(np.log2(spread / 128))
        biases = rng.integers(-int(spread), int(spread) + 1, ko)
        residual = rng.integers(-128, 128, (h, w, ko)) + (0 if signed else 128)
        wanted = choice("residual", [False, True])
        at = l1.tensor(residual.astype(np.int8 if signed else np.uint8), out_row, out_pixel) if wanted else None
        block = parameters if wanted else replace(parameters, residual=None)
        extra = Extension(l1.put(block.block()), choice("rounds_once", [False, True]), at, signed_input)
        parameters = block
        if extra.rounds_once:
            shift = np.minimum(shift, 0)
    else:
        extra = Extension(signed_input=True) if signed_input else None
        # Up to all bits, so that products wrap, and shifts beyond 31, which only bytes for each channel have.
        scale = rng.integers(1, 1 << min(scale_bits or 8, choice("scale_width", [12, 32])), ko)
        shift = (
            np.where(rng.random(ko) < 0.1, 40, rng.integers(0, 24, ko))
            if per_channel
            else np.full(ko, choice("shift", [0, 7, 15, 22]))
        )
        biases = rng.integers(-(1 << 28), 1 << 28, ko) if bias else np.zeros(ko, np.int64)
    job = Job(
        mode=mode, h_out=h, w_out=w, ki=ki, ko=ko,
        input=at_input, input_pixel=in_pixel, input_row=in_row,
        output=at_output, output_pixel=out_pixel, output_row=out_row,
        weights=l1.put(pack(weights, mode, bits, offset)),
        stride=stride, padding=padding, pad_value=pad_value, weight_bits=bits, weight_offset=offset,
        output_bits=output_bits, signed=signed,
        scale=l1.put(scale.astype(f"<u{scale_bits // 8}").tobytes()) if scale_bits else None,
        scale_bits=scale_bits or 8,
        shift=int(shift[0]) if scale_bits and not per_channel else 0,
        shifts=l1.put(shift.astype(np.int8).tobytes()) if per_channel else None,
        bias=l1.put(biases.astype("<i4").tobytes()) if bias else None,
        stream_in=stream_in, extension=extra,
    )  # fmt: skip
    return LaidOut(job, bytes(l1.bytes), x, weights, scale, shift, biases, start, residual, parameters)


def _parameters(rng: np.random.Generator, signed: bool) -> Parameters:
    low = -128 if signed else 0
    zero, other, total = (int(low + n) for n in rng.integers(0, 256, 3))
    minimum = int(low + rng.integers(0, 100))
    multipliers = [int(n) for n in rng.integers(1 << 30, 1 << 31, 3)]
    add = Residual(
        other, multipliers[0], int(rng.integers(-3, 1)), multipliers[1], int(rng.integers(-3, 1)),
        multipliers[2], -19, total, low, int(low + rng.integers(200, 256)),
    )  # fmt: skip
    return Parameters(zero, minimum, low + 255, add)
