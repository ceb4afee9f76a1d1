"""Depthwise windows with taps in neighbouring bytes: channel strips and their C structure."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from stages.backends.cortex_m.kernels.mve.lines import GROUP, parts_of
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView

CHUNK = 16  # taps of a vector
STEPS = (1, 2, 3, 4, 6)  # from a window to the next that taps.S has functions of their own for
MOST_BYTES = 32767 // 8  # from a strip, or an output pixel, to the next: eight of them are offsets of 16 bits
_WINDOW = ("kernel_y", "kernel_x", "stride_y", "stride_x", "dilation_y", "dilation_x", "top", "left")
FIELDS = Structure.of_header("mve_taps", __file__, "taps.h")


@dataclass(frozen=True)
class Strips:
    """Strips of a layer along its rows, or along its columns if `turned`.

    Pairs are (across, along) the strips.
    """

    view: LayerView
    turned: bool

    @property
    def taps(self) -> int:
        """Taps of a window."""
        return prod(self.view.op.kernel)

    @property
    def chunks(self) -> int:
        """Vectors that hold a window's taps, the last possibly incomplete."""
        return -(-self.taps // CHUNK)

    @property
    def lanes(self) -> int:
        """Channels whose strips are in scratch at a time."""
        return min(int(self.view.op.in_channels), GROUP)

    @property
    def shared(self) -> bool:
        """Whether all output channels read the same strip."""
        return int(self.view.op.in_channels) == 1

    def pair(self, values: Any) -> tuple[int, int]:
        """Return a pair (rows, columns) as (across, along)."""
        return (values[1], values[0]) if self.turned else (values[0], values[1])

    @property
    def kernel(self) -> tuple[int, int]:
        """Window across and along the strip."""
        return self.pair(self.view.op.kernel)

    @property
    def stride(self) -> tuple[int, int]:
        """Stride across and along the strip."""
        return self.pair(self.view.op.stride)

    @property
    def dilation(self) -> tuple[int, int]:
        """Dilation across and along the strip."""
        return self.pair(self.view.op.dilation)

    @property
    def size(self) -> tuple[int, int]:
        """Input pixels across and along the strip."""
        return self.pair(self.view.inputs[0].shape[1:3])

    @property
    def out(self) -> tuple[int, int]:
        """Output pixels across and along the strip."""
        return self.pair(self.view.outputs[0].shape[1:3])

    @property
    def steps_of_x(self) -> tuple[int, int]:
        """Return the bytes between neighbours of the image."""
        return self._steps(self.view.inputs[0].shape)

    @property
    def steps_of_y(self) -> tuple[int, int]:
        """Return the bytes between neighbours of the output."""
        return self._steps(self.view.outputs[0].shape)

    def _steps(self, shape: tuple[int, ...]) -> tuple[int, int]:
        return self.pair((shape[2] * shape[3], shape[3]))

    @property
    def step(self) -> int:
        """Bytes between windows; a dilated window has separate bytes."""
        return self.kernel[0] * (self.stride[1] if self.dilation[1] == 1 else self.kernel[1])

    @property
    def pitch(self) -> int:
        """Bytes of a channel's strip: one byte per window row in each column."""
        return (self.out[1] - 1) * self.step + self.taps

    @property
    def fits(self) -> bool:
        """Whether the strides fit the offsets of the assembly."""
        return max(self.pitch, self.steps_of_y[1]) <= MOST_BYTES

    @property
    def strip_bytes(self) -> int:
        """Bytes of all strips, including reads after the last.

        Windows are read in multiples of 8, each in whole vectors.
        """
        behind = -self.out[1] % 8 * self.step + self.chunks * CHUNK
        return self.lanes * self.pitch + behind

    @cached_property
    def parts(self) -> int:
        """int8 addends of a weight."""
        return parts_of(self.view)

    @property
    def rotated_bytes(self) -> int:
        """Bytes of a channel's rotated weights, if they do not fit a vector."""
        return self.chunks * CHUNK * self.parts if self.chunks > 1 else 0

    def tap(self, ky: Any, kx: Any) -> Any:
        """Return the number of the tap at a row and column of the window."""
        across, along = (kx, ky) if self.turned else (ky, kx)
        return across * self.kernel[1] + along

    @property
    def has_exact(self) -> bool:
        """Whether a function requantizes in mode exact of rounding.py."""
        return self.step in STEPS and self.parts == 1 and self.chunks == 1

    @property
    def _copied_rows(self) -> int:
        """Rows of the image that are copied into the strips."""
        if self.dilation[0] > 1:
            return self.out[0] * self.kernel[0]
        rows = (self.out[0] - 1) * self.stride[0] + self.kernel[0] - self.pair(self.view.op.padding)[0]
        return min(self.size[0], rows)

    def cost(self, mode: str = "") -> float:
        """Return instructions, from counts, by mode of rounding.py ('': exact where possible).

        Per row of windows 23 per channel. Eight windows take 33 in mode exact and 55 in others; with many taps four
        windows take 30, and 9 per vector. Copying 16 channels of a pixel takes about ten.
        """
        op, chunks, (height, width) = self.view.op, self.chunks, self.out
        wide = self.parts - 1
        if chunks > 1:
            quad = chunks * (9 + 5 * wide) + 30
            row = 23.0 + 20 * chunks + -(-width // 4) * quad
        else:
            eights, rest = divmod(width, 8)
            is_exact = mode == "exact" if mode else self.has_exact
            eight = (33.5 if is_exact else 55) + 8 * wide
            row = 23.0 + eights * eight + (0 if not rest else eight + 5 if rest > 4 else eight / 2 + 5)
        if mode == "shifted":
            row += width * 2
        copies = self._copied_rows
        pixels = self.size[1] if self.dilation[1] == 1 else width * self.kernel[1]
        groups = -(-op.in_channels // GROUP)
        if self.shared:
            around = copies * (pixels * (8 if self.turned else 0.5) + 92) + height * 97
        else:
            pixel = 11.3 if op.in_channels > GROUP // 2 else 10.2
            around = groups * (copies * pixels * pixel + height * (119 + 60 * op.depth_multiplier))
        batch = self.view.outputs[0].shape[0]
        return float(batch * (height * op.out_channels * row + around + groups * 100))

    @property
    def fields(self) -> dict[str, int]:
        """Return the fields of taps.h."""
        op, offset = self.view.op, INT8_OFFSET[self.view.inputs[0].dtype]
        width, (out_line, out_pixel) = self.out[1], self.steps_of_y
        window = (*self.kernel, *self.stride, *self.dilation, *self.pair(op.padding))
        return {
            "pitch": 0 if self.shared else self.pitch,
            "y_channel": 1 if self.shared else op.depth_multiplier,
            "taps": self.taps,
            "step": self.step,
            "out_pixel": out_pixel,
            "zero_point": op.output_zero_point,
            "low": op.act_min,
            "high": op.act_max,
            "eights": width // 8,
            "rest": width % 8,
            "rest_bytes": width % 8 * out_pixel,
            "chunks": self.chunks,
            "last_bytes": ((width - 1) % 4 + 1) * out_pixel,
            "height": self.size[0],
            "width": self.size[1],
            "line": self.steps_of_x[0],
            "pixel": self.steps_of_x[1],
            "out_height": self.out[0],
            "out_width": width,
            "out_line": out_line,
            **dict(zip(_WINDOW, window, strict=True)),
            "fill": op.input_zero_point - offset,
            "flip": offset,
            "multiplier": op.depth_multiplier,
            "lanes": self.lanes,
            "strips": self.strip_bytes,
            "rotated": self.rotated_bytes,
        }


def strips_of(view: LayerView) -> Strips:
    """Return the cheaper strips; along the rows if neither fits."""
    fitting = [strips for strips in (Strips(view, turned) for turned in (False, True)) if strips.fits]
    return min(fitting, key=lambda strips: strips.cost()) if fitting else Strips(view, False)
