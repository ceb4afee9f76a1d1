"""Instructions of gemm.c and im2col.c for a convolution."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from stages.backends.generic.kernels.generic.im2col import reads_in_place
from stages.backends.kernels.eight_bit import weight_zero_point
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.windows import whole_windows

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


@dataclass(frozen=True)
class Prices:
    """Instructions, fitted to counts.

    product   for one product of a panel where `rows` rows are computed at once; `single` where one is
    left      for one product of a column that fills no panel
    output    to requantize and store an output
    row       around a row of a group; `panel` around `rows` rows of a panel
    run       for a run of bytes that is gathered, `byte` for each of its bytes, `flipped` for one of uint8
    plane     for a row of a window in a plane, `element` for each of its elements
    tile      for two calls of functions
    """

    rows: int
    product: float
    single: float
    left: float
    output: float
    row: float
    panel: float
    run: float
    byte: float
    flipped: float
    plane: float
    element: float
    tile: float


ARM = Prices(2, 2.2, 2.5, 4.9, 54.0, 31.0, 0.0, 38.0, 1.7, 10.2, 45.0, 13.1, 90.0)
ARM64 = Prices(2, 1.4, 2.5, 5.9, 40.0, 24.0, 0.0, 48.0, 0.6, 10.7, 30.0, 15.0, 93.0)
RISCV = Prices(4, 2.6, 3.5, 6.8, 45.0, 49.0, 28.0, 28.0, 7.8, 13.0, 32.0, 14.4, 103.0)
RISCV64 = Prices(4, 1.56, 3.5, 6.8, 45.0, 53.0, 51.0, 28.0, 8.0, 13.3, 31.0, 16.1, 101.0)
ROW_SUM = 4.0  # of an element of a row, for weights that have a zero point


def prices_of(target: Target) -> Prices:
    riscv, wide = target.family == "riscv", target.word_bits == 64
    return (RISCV64 if wide else RISCV) if riscv else ARM64 if wide else ARM


def convolution_cost(view: LayerView, pixels: int, target: Target) -> float:
    """Return the cost of CONV_2D with `pixels` output pixels of a group at a time."""
    from stages.backends.generic.kernels.generic.packing import PANEL

    op, depth, price = view.op, depth_of(view), prices_of(target)
    batch, height, width, channels = view.outputs[0].shape
    groups, count = batch * op.groups, height * width
    panels, left = divmod(channels // op.groups, PANEL)
    tiles, last = divmod(count, pixels)
    blocks = tiles * (pixels // price.rows) + last // price.rows
    alone = count - blocks * price.rows
    each = depth * PANEL * panels
    products = blocks * (price.rows * each * price.product + panels * price.panel) + alone * each * price.single
    row = left * depth * price.left + channels // op.groups * price.output + price.row
    if weight_zero_point(view):
        row += depth * ROW_SUM
    gathered = 0.0 if reads_in_place(view) else _gathered(view, price)
    return groups * (products + count * row + gathered + (tiles + (last > 0)) * price.tile)


def _gathered(view: LayerView, price: Prices) -> float:
    """Return the cost of gathering the windows of a group."""
    op, x, (_, height, width, _) = view.op, view.inputs[0], view.outputs[0].shape
    pixels, channels = height * width, op.in_channels // op.groups
    if x.layout == "NCHW":
        return pixels * channels * (op.kernel[0] * price.plane + prod(op.kernel) * price.element)
    byte = price.flipped if x.dtype == "uint8" else price.byte
    runs = float(op.kernel[1])  # of a row of a window
    if op.groups == 1 and op.dilation[1] == 1:
        inside = len(whole_windows(view, 1)) / width
        runs = inside + (1 - inside) * op.kernel[1]
    return pixels * op.kernel[0] * (runs * price.run + op.kernel[1] * channels * byte)
