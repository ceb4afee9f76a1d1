"""Windows as byte runs, and weights in their order, for few.S."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic, clamps
from stages.backends.cortex_m.kernels.arm_dsp.packing import half_words
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.matrix import columns_of, has_windows, rows_of
from stages.backends.kernels.structure import SIZES, TAPS, Structure
from stages.backends.kernels.windows import whole_windows
from stages.ir.graph import LayerView, Tensor
from stages.ir.operators.products import Conv2D, FullyConnected
from stages.support.lazy import np, npt

RUNS = ("units", "odd", "rest", "runs", "rows", "jump", "row_jump")
WINDOWS = Structure.of_header("arm_dsp_few_windows", __file__, "few.h")
# What stands before two of these in the C structure arm_dsp_few: windows that lie inside the image, and copied ones.
LAYER = Structure(
    "arm_dsp_few_fields",
    (
        *(*SIZES, *TAPS, "first_y", "end_y", "first_x", "end_x", "fill"),
        *("groups", "group_in", "group_out", "blocks", "block_channels", "last", "words", "y_row"),
    ),
)
AT_ONCE = 4  # channels


@dataclass(frozen=True)
class Windows:
    """Windows of a layer. Without windows: one row of single-pixel windows."""

    view: LayerView

    @cached_property
    def plain(self) -> bool:
        """Whether the layer has no windows."""
        return not has_windows(self.view)

    @property
    def rows_alone(self) -> bool:
        """Whether only rows of one channel block are computed, without copies or groups."""
        return self.plain and self.groups == self.blocks == 1

    @property
    def images(self) -> int:
        """Images of a run; layers without windows have one row of all pixels."""
        return 1 if self.plain and not self.planar else int(self.view.outputs[0].shape[0])

    @property
    def channels(self) -> int:
        """Input channels."""
        op = self.view.op
        return int(op.depth if isinstance(op, FullyConnected) else op.in_channels)

    @property
    def groups(self) -> int:
        """Groups of a grouped convolution, else 1."""
        return int(getattr(self.view.op, "groups", 1))

    @property
    def size(self) -> tuple[int, int]:
        """Size of the image."""
        return self._pixels(self.view.inputs[0])

    @property
    def out(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        return self._pixels(self.view.outputs[0])

    @property
    def kernel(self) -> tuple[int, int]:
        """Rows and columns of a window."""
        return (1, 1) if self.plain else self.view.op.kernel

    @property
    def stride(self) -> tuple[int, int]:
        """Pixels from window to window: rows, columns."""
        return (1, 1) if self.plain else self.view.op.stride

    @property
    def dilation(self) -> tuple[int, int]:
        """Pixels from tap to tap: rows, columns."""
        return (1, 1) if self.plain else self.view.op.dilation

    @property
    def before(self) -> tuple[int, int]:
        """Padding at the top and the left."""
        return (0, 0) if self.plain else self.view.op.padding[:2]

    @property
    def group_in(self) -> int:
        """Input channels of a group."""
        return self.channels // self.groups

    @property
    def group_out(self) -> int:
        """Output channels of a group."""
        return columns_of(self.view) // self.groups

    @property
    def at_once(self) -> int:
        """Output channels per block."""
        return min(AT_ONCE, self.group_out)

    @property
    def blocks(self) -> int:
        """Blocks of output channels of a group, the last possibly incomplete."""
        return -(-self.group_out // self.at_once)

    @property
    def joined(self) -> bool:
        """Whether the bytes of a window row are contiguous."""
        return self.groups == 1 and self.dilation[1] == 1

    @property
    def runs(self) -> int:
        """Runs per window."""
        return self.kernel[0] if self.joined else self.kernel[0] * self.kernel[1]

    @property
    def run(self) -> int:
        """Bytes per run."""
        return self.kernel[1] * self.channels if self.joined else self.group_in

    @property
    def fours(self) -> int:
        """Groups of four bytes per run; the last may be incomplete."""
        return -(-self.run // 4)

    @cached_property
    def scale(self) -> npt.NDArray[np.int32]:
        """Multiplier and shift words, int32 [channels, 2 or 3]."""
        return arithmetic(self.view, long=self.view.op.rounds_twice).scale.scale

    @property
    def mode(self) -> str:
        """Requantization: `long` for three scale words, else the rounding."""
        return "long" if self.scale.shape[1] > 2 else str(self.view.op.rounding)

    @property
    def words(self) -> int:
        """Words of a block: biases, weights, scales."""
        return self.at_once * (1 + self.runs * self.fours * 2 + int(self.scale.shape[1]))

    @property
    def planar(self) -> bool:
        """Whether the output is NCHW."""
        return isinstance(self.view.op, Conv2D) and self.view.outputs[0].layout == "NCHW"

    @property
    def inside_count(self) -> int:
        """Windows that lie inside an image."""
        return len(self._whole(0)) * len(self._whole(1))

    def weights(self) -> npt.NDArray[np.int32]:
        """Return int32 [groups * blocks, words]."""
        view = self.view
        constants = arithmetic(view, long=view.op.rounds_twice)
        centred = constants.weights - constants.weight_zero_point
        # The sums are of the bytes as they are, uint8 too.
        bias = constants.bias - INT8_OFFSET[view.inputs[0].dtype] * centred.sum(1)
        runs = centred.reshape(len(centred), self.runs, self.run)
        runs = np.pad(runs, ((0, 0), (0, 0), (0, self.fours * 4 - self.run)))
        # [channels, fours, 2, 2]: elements 0 and 2, 1 and 3
        words = half_words(runs.reshape(len(runs), -1, 2, 2).swapaxes(-1, -2))
        starts = np.minimum(np.arange(self.blocks) * self.at_once, self.group_out - self.at_once)
        numbers = (np.arange(self.groups)[:, None] * self.group_out + starts).reshape(-1, 1) + np.arange(self.at_once)
        parts = [
            bias[numbers].astype(np.uint64).astype(np.uint32).view(np.int32),
            words[numbers].transpose(0, 2, 1, 3).reshape(len(numbers), -1),
            constants.scale.scale[numbers].swapaxes(1, 2).reshape(len(numbers), -1),
        ]
        return np.concatenate(parts, 1).astype(np.int32)

    def fields(self) -> npt.NDArray[np.int32]:
        """Return the C structure arm_dsp_few, or arm_dsp_few_windows for plain rows."""
        (height, width), (rows, columns), step = self.size, self.out, self.channels
        down, across = self._whole(0), self._whole(1)
        y_pixel, y_channel = (1, rows * columns) if self.planar else (columns_of(self.view), 1)
        window = (*self.kernel, *self.stride, *self.dilation, *self.before)
        layer = {
            **dict(zip(SIZES, (height, width, step, rows, columns), strict=True)),
            **dict(zip(TAPS, window, strict=True)),
            "first_y": down.start,
            "end_y": down.stop,
            "first_x": across.start,
            "end_x": across.stop,
            "fill": getattr(self.view.op, "input_zero_point", 0),
            "groups": self.groups,
            "group_in": self.group_in,
            "group_out": self.group_out,
            "blocks": self.blocks,
            "block_channels": self.at_once,
            "last": self.group_out - self.at_once,
            "words": self.words,
            "y_row": columns * y_pixel,
        }
        steps = {"pixel": self.stride[1] * step, "y_pixel": y_pixel, "y_channel": y_channel, **clamps(self.view)}
        inside, copied = (
            WINDOWS.of({**dict(zip(RUNS, runs, strict=True)), **steps})
            for runs in (self._runs(width, *self.dilation), self._runs(self.kernel[1], 1, 1))
        )
        return inside if self.rows_alone else np.concatenate([LAYER.of(layer), inside, copied])

    @property
    def field_words(self) -> int:
        """32-bit words of the structure that the C function reads."""
        return len(WINDOWS.fields) if self.rows_alone else len(LAYER.fields) + 2 * len(WINDOWS.fields)

    def _pixels(self, tensor: Tensor) -> tuple[int, int]:
        if self.plain:
            return 1, rows_of(self.view) // self.images
        _, height, width, _ = tensor.shape
        return height, width

    def _whole(self, axis: int) -> range:
        """Return which output rows or columns have windows inside the image along the axis."""
        return range(self.out[axis]) if self.plain else whole_windows(self.view, axis)

    def _runs(self, width: int, dilation_y: int, dilation_x: int) -> tuple[int, ...]:
        """Return the fields units to row_jump of a window in an image of that width."""
        by, step = (8 if self.at_once == 1 else 4), self.channels
        fours, rest = divmod(self.run, 4)
        counts = (fours * 4 // by, fours % (by // 4), rest)
        row = dilation_y * width * step
        if self.joined:
            return (*counts, self.runs, 1, row - self.run, 0)
        taps = (self.kernel[1] - 1) * dilation_x * step
        return (*counts, self.kernel[1], self.kernel[0], dilation_x * step - self.run, row - taps - self.run)
