"""Order of depthwise windows over an image: row and column axes, and pixels taken together."""

from dataclasses import dataclass, replace

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.ir.graph import LayerView

Pair = tuple[int, int]  # rows, columns
FULL = 16  # lanes of a vector
MOST_LANES = 128  # of neighbouring pixels that are taken as one: each has constants


@dataclass(frozen=True)
class Walk:
    """Windows on an image of `channels` bytes a pixel; `before` is padding above and left.

    `repeat` neighbouring outputs count as one with `repeat` times the channels, if the column stride is 1. `is_plain`:
    rows are image rows or columns, and outputs are taken one by one.
    """

    size: Pair
    out: Pair
    kernel: Pair
    stride: Pair
    dilation: Pair
    before: Pair
    channels: int
    repeat: int = 1
    is_plain: bool = True

    @property
    def lanes(self) -> int:
        """Channels of outputs that count as one."""
        return self.channels * self.repeat

    @property
    def columns(self) -> int:
        """Combined outputs per row."""
        return self.out[1] // self.repeat

    @property
    def span(self) -> Pair:
        """Rows and columns of the image under a window."""
        rows, columns = ((self.kernel[i] - 1) * self.dilation[i] + 1 for i in range(2))
        return rows, columns

    @property
    def needed(self) -> Pair:
        """Padded image size that all windows cover."""
        rows, columns = ((self.out[i] - 1) * self.stride[i] + self.span[i] for i in range(2))
        return rows, columns

    @property
    def is_inside(self) -> bool:
        """Whether no window leaves the image."""
        return self.before == (0, 0) and all(self.needed[i] <= self.size[i] for i in range(2))

    def offsets(self, line: int, pixel: int) -> list[int]:
        """Return the bytes from the first tap to each, by (row, column).

        Rows are `line` and columns `pixel` bytes apart.
        """
        rows, columns = (range(self.kernel[i]) for i in range(2))
        return [y * self.dilation[0] * line + x * self.dilation[1] * pixel for y in rows for x in columns]


def plain_walk(view: LayerView) -> Walk:
    """Return the row-by-row walk; an image of one column is transposed."""
    op, size, out = view.op, view.inputs[0].shape[1:3], view.outputs[0].shape[1:3]
    pairs = [size, out, op.kernel, op.stride, op.dilation, op.padding[:2]]
    rows, columns = ([int(pair[i]) for pair in pairs] for i in range(2))
    if columns[:3] == [1, 1, 1] and columns[5] == 0:
        rows, columns = columns, rows
    of_image, of_output, kernel, stride, dilation, before = zip(rows, columns, strict=True)
    return Walk(of_image, of_output, kernel, stride, dilation, before, int(op.in_channels))


def walks(view: LayerView) -> list[Walk]:
    """Return the possible walks: by rows, or all rows as one for dense windows of one column.

    Each also with several outputs counted as one, for divisors of the row length.
    """
    plain = plain_walk(view)
    candidates = [plain]
    width = plain.size[1]
    if (plain.kernel[1], plain.stride, plain.before[1], plain.out[1]) == (1, (1, 1), 0, width) and plain.out[0] > 1:
        candidates.append(
            Walk(
                (1, plain.size[0] * width),
                (1, plain.out[0] * width),
                (1, plain.kernel[0]),
                (1, 1),
                (1, plain.dilation[0] * width),
                (0, plain.before[0] * width),
                plain.channels,
                is_plain=False,
            )
        )
    if plain.stride[1] == 1 and plain.channels % FULL:
        for walk in list(candidates):
            repeats = [n for n in range(2, MOST_LANES // walk.channels + 1) if walk.out[1] % n == 0]
            candidates += [replace(walk, repeat=n, is_plain=False) for n in repeats]
    return candidates


def flip(view: LayerView) -> int:
    """Return the xor mask that makes the activations int8."""
    return INT8_OFFSET[view.inputs[0].dtype]
