"""Geometry of an NE16 job: one convolution over tensors in L1, split by the engine.

Tensors are HWC with contiguous channels. An address is that of the first pixel inside the image. Strides are in bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Literal, NamedTuple

Mode = Literal["conv3x3", "depthwise3x3", "conv1x1"]
# Output rows and columns, input channels and output channels that the engine computes at a time.
SUBTILE_PIXELS, SUBTILE_KI, SUBTILE_KO = 3, 16, 32
ADDRESS_SPACE = 1 << 32


class Refused(ValueError):
    """A job that the engine cannot compute, or cannot compute as one job."""


class Padding(NamedTuple):
    """Rows and columns beyond the edges that the outermost outputs read."""

    top: int = 0
    right: int = 0
    bottom: int = 0
    left: int = 0


NO_PADDING = Padding()


@dataclass(frozen=True)
class Extension:
    """Settings of the extended engine (extension.py).

    parameters    address of the layer's block
    residual      address of a tensor to add, with the strides of the output; None: none
    rounds_once   as `single` in stages.ir.layers.rounding
    signed_input  activations and the padding value are int8
    """

    parameters: int | None = None
    rounds_once: bool = False
    residual: int | None = None
    signed_input: bool = False


@dataclass(frozen=True)
class Job:
    """One convolution.

    mode            3x3 over all input channels, 3x3 depthwise (ki = ko), or 1x1
    input_pixel …   bytes from pixel to pixel and from row to row
    padding         rows and columns of `pad_value` around the input, 0 to 2 at each edge; none with 1x1
    weight_bits     2 to 8; `weight_offset`, -256 to 255, is added to every stored weight
    output_bits     8, 16 or 32. Without `scale` the int32 sums are written
    signed          the output saturates as a signed number, else as an unsigned one, which is the engine's ReLU
    scale           address of the unsigned multipliers of the channels, `scale_bits` 8, 16 or 32
    shift, shifts   one right shift for all channels, 0 to 31, or the address of one byte for each
    bias            address of one int32 for each channel, added to the scaled sum (extended: to the sum)
    stream_in       sums start with the int32 values that lie in the output
    """

    mode: Mode
    h_out: int
    w_out: int
    ki: int
    ko: int
    input: int
    input_pixel: int
    input_row: int
    output: int
    output_pixel: int
    output_row: int
    weights: int
    stride: int = 1
    padding: Padding = NO_PADDING
    pad_value: int = 0
    weight_bits: int = 8
    weight_offset: int = -128
    output_bits: int = 8
    signed: bool = False
    scale: int | None = None
    scale_bits: int = 8
    shift: int = 0
    shifts: int | None = None
    bias: int | None = None
    stream_in: bool = False
    extension: Extension | None = None

    @property
    def kernel(self) -> int:
        """Rows and columns of the kernel."""
        return 1 if self.mode == "conv1x1" else 3

    @property
    def channels(self) -> int:
        """Output channels that are computed at a time."""
        return SUBTILE_KI if self.mode == "depthwise3x3" else SUBTILE_KO

    @property
    def macs(self) -> int:
        """MACs, padding included."""
        ki = 1 if self.mode == "depthwise3x3" else self.ki
        return self.h_out * self.w_out * self.ko * ki * self.kernel**2

    @property
    def is_whole(self) -> bool:
        """Whether the engine computes it as one job."""
        return len(_rows(self)) * len(_columns(self)) == 1


def split(job: Job) -> Iterator[Job]:
    """Return the jobs that the engine can compute, row by row.

    Stride 2 is computed in blocks of 2x2 output pixels. If the subtile before the last would read one of two rows (or
    columns) of padding at the end, the job is split there.
    """
    for row, column in product(_rows(job), _columns(job)):
        out = row.first * job.output_row + column.first * job.output_pixel
        extension = job.extension
        if extension is not None and extension.residual is not None:
            extension = replace(extension, residual=extension.residual + out)
        yield replace(
            job,
            h_out=row.size,
            w_out=column.size,
            padding=Padding(row.before, column.after, row.after, column.before),
            input=job.input + row.real * job.input_row + column.real * job.input_pixel,
            output=job.output + out,
            extension=extension,
        )


class _Span(NamedTuple):
    """Output rows (columns) from `first` on, their padding, and their first real input row."""

    first: int
    size: int
    before: int
    after: int
    real: int


def _rows(job: Job) -> list[_Span]:
    return _spans(job.h_out, job, job.padding.top, job.padding.bottom)


def _columns(job: Job) -> list[_Span]:
    return _spans(job.w_out, job, job.padding.left, job.padding.right)


def _spans(count: int, job: Job, before: int, after: int) -> list[_Span]:
    if job.stride == 2:
        cuts = [*range(0, count, 2), count]
    elif after == 2 and count % SUBTILE_PIXELS == 1 and count > 1:
        cuts = [0, count - 1, count]
    else:
        cuts = [0, count]
    total = (count - 1) * job.stride + job.kernel
    spans = []
    for first, end in pairwise(cuts):
        start, stop = first * job.stride, (end - 1) * job.stride + job.kernel
        padded = max(0, before - start)
        spans.append(_Span(first, end - first, padded, max(0, stop - (total - after)), start + padded - before))
    return spans
