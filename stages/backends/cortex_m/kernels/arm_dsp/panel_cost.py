"""Instruction model of panel.c, which gathers convolution windows."""

from stages.backends.cortex_m.kernels.arm_dsp.panels import pixel_runs, step_elements
from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_zero_point
from stages.backends.kernels.matrix import run_elements
from stages.backends.kernels.windows import whole_windows
from stages.ir.graph import LayerView
from stages.support.lazy import np

PANEL = 140.0  # to find where it lies
TOGETHER = 1.8  # of a step of a row, where panel.S gathers all rows of a panel at once
ABOVE_OR_BELOW = 200.0  # such a panel whose windows leave the image there
ALONE = 2.6  # of a step of a row, where panel.S gathers one at a time
ROW, ROW_RUN = 45.0, 20.0  # around such a row, and its runs
EDGE, EDGE_RUN, EDGE_FOUR = 150.0, 60.0, 19.0  # of a row that leaves the image at the sides, by C
ADJUSTED, ADJUSTED_RUN, ADJUSTED_FOUR = 100.0, 57.0, 28.0  # the same of one that is flipped, or summed


def gathered(view: LayerView, mr: int) -> float:
    """Return the instructions for all panels of `mr` pixels of an image, from counts.

    Windows that leave the image cost the most.
    """
    op, channels = view.op, view.inputs[0].shape[3]
    _, out_height, out_width, _ = view.outputs[0].shape
    (kernel_y, kernel_x), dilation_x = op.kernel, op.dilation[1]
    pixels, steps, run = out_height * out_width, len(step_elements(view, mr)), run_elements(view)
    at_once = pixel_runs(view)[1]
    runs = kernel_y if dilation_x == 1 else kernel_y * kernel_x
    first = np.add.outer(np.arange(0, pixels, at_once), np.arange(0, at_once, mr)).reshape(-1)
    rows = np.minimum(mr, at_once - first % at_once)
    row, column = np.divmod(np.arange(pixels), out_width)
    inside_y, inside_x = np.isin(row, whole_windows(view, 0)), np.isin(column, whole_windows(view, 1))
    plain = INT8_OFFSET[view.inputs[0].dtype] == 0 and weight_zero_point(view) == 0
    last = first + rows - 1
    side_by_side = (first // out_width == last // out_width) & inside_x[first] & inside_x[last]
    together = side_by_side & (rows >= 3) & (plain and dilation_x == 1)
    total = PANEL * len(first) + together.sum() * mr * steps * TOGETHER
    total += (together & ~inside_y[first]).sum() * ABOVE_OR_BELOW
    alone = np.repeat(~together, rows)
    adjusted = alone & (np.repeat(rows < 3, rows) | (not plain))
    total += adjusted.sum() * (ADJUSTED + runs * (ADJUSTED_RUN + -(-run // 4) * ADJUSTED_FOUR))
    whole = inside_x & (dilation_x == 1)
    total += (alone & ~adjusted & whole & inside_y).sum() * ROW
    total += (alone & ~adjusted & whole).sum() * (kernel_y * ROW_RUN + steps * ALONE)
    by_bytes = dilation_x == 1 and channels % 4 != 0
    edge = kernel_y * (EDGE_RUN + (-(-run // 4) * EDGE_FOUR if by_bytes else 0.0))
    total += (alone & ~adjusted & ~whole).sum() * (edge + (0.0 if by_bytes else steps * ALONE))
    return float(total + (alone & ~adjusted & ~(whole & inside_y)).sum() * EDGE)
