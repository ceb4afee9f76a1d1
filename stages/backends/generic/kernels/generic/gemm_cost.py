"""Instructions of gemm.c and im2col.c for a convolution."""

from math import prod

from stages.backends.generic.kernels.generic.costs import ProductCosts, costs_of
from stages.backends.generic.kernels.generic.im2col import reads_in_place
from stages.backends.kernels.eight_bit import weight_zero_point
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.windows import whole_windows
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView

ROW_SUM = 4.0  # of an element of a row, for weights that have a zero point


def convolution_cost(view: LayerView, pixels: int, target: Target) -> float:
    """Return the cost of CONV_2D with `pixels` output pixels of a group at a time."""
    from stages.backends.generic.kernels.generic.packing import PANEL

    op, depth, price = view.op, depth_of(view), costs_of(target).products
    batch, height, width, channels = view.outputs[0].shape
    groups, count = batch * op.groups, height * width
    panels, rest = divmod(channels // op.groups, PANEL)
    tiles, last = divmod(count, pixels)
    blocks = tiles * (pixels // price.rows) + last // price.rows
    alone = count - blocks * price.rows
    row_products = depth * PANEL * panels
    products = (
        blocks * (price.rows * row_products * price.product + panels * price.panel)
        + alone * row_products * price.single
    )
    row = rest * depth * price.left + channels // op.groups * price.output + price.row
    if weight_zero_point(view):
        row += depth * ROW_SUM
    gathered = 0.0 if reads_in_place(view) else _gathered(view, price)
    return groups * (products + count * row + gathered + (tiles + (last > 0)) * price.tile)


def _gathered(view: LayerView, price: ProductCosts) -> float:
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
