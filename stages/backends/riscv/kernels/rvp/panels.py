"""Layers as matrix products of row panels and channel blocks, for the GEMM kernels."""

from math import prod
from typing import NamedTuple

from stages.backends.kernels.eight_bit import weight_zero_point, why_not_sums
from stages.backends.kernels.matrix import WINDOWS, columns_of, depth_of, rows_of, run_elements, windows_of
from stages.backends.kernels.structure import Structure
from stages.backends.riscv.kernels.rvp.base import arithmetic
from stages.ir.graph import LayerView
from stages.ir.layers import ROUNDINGS

# Scratch for the panels of one call by lanes: as many panels as fit share what a call costs.
PANEL_BYTES = {1: 2048, 2: 4096}
GEOMETRY = Structure("rvp_geometry", (*WINDOWS, "fill", "pixel_step"))  # of panel.h


class Calls(NamedTuple):
    """Panels of `rows` rows, with the panels per call and the number of calls."""

    rows: int
    panels: int
    times: int


class Products(NamedTuple):
    """Matrix products of a layer: one, or for a grouped convolution one per set of groups.

    parts     number of products; each has its own channels
    groups    groups of the layer per product: the weights of each group are on the diagonal, all others have no effect
    channels  channels of a pixel, for one product; so are `depth` of a sum, `columns` and `run` (`run_elements`)
    """

    parts: int
    groups: int
    channels: int
    depth: int
    columns: int
    run: int

    @property
    def chunks(self) -> int:
        """Chunks per row; each run of elements begins a new chunk."""
        return self.depth // self.run * -(-self.run // 4)


def products(view: LayerView, lanes: int) -> Products:
    """Return the products with the cheapest number of groups in each."""
    op = view.op
    groups = getattr(op, "groups", 1)
    if groups == 1:
        depth = depth_of(view)
        return Products(1, 1, view.inputs[0].shape[-1], depth, columns_of(view), run_elements(view))
    channels, columns, taps = op.in_channels // groups, op.out_channels // groups, prod(op.kernel)
    block = 4 * lanes

    def cost(merged: int) -> float:
        """Return the relative cost of a row of products: chunks, block epilogues, single bytes."""
        blocks = -(-columns * merged // block)
        staged = columns * merged % block != 0
        product_cost = blocks * (6 * taps * -(-channels * merged // 4) + 28) + (9 * columns * merged if staged else 0)
        return groups // merged * (product_cost + 5 * taps * (2 + channels * merged // block))

    merged = min((count for count in range(1, groups + 1) if groups % count == 0), key=cost)
    width = channels * merged
    run = run_elements(view) if merged == groups else width
    return Products(groups // merged, merged, width, taps * width, columns * merged, run)


def calls(view: LayerView, lanes: int, mr: int, most: int = 0) -> dict[str, Calls]:
    """Return panel calls per product and image, each for at most `most` panels of `mr` rows.

    Without `most`, as many as scratch holds. The `_last` calls have fewer panels, the `_rest` calls fewer rows. With a
    planar output of several images, each image has its own product, because the pixels of a channel are apart.
    """
    pixels = rows_of(view) // images_of(view)
    rows = min(mr, pixels)
    panel = prod((products(view, lanes).chunks + (weight_zero_point(view) != 0), rows, lanes, 4))
    panels = min(most or max(1, PANEL_BYTES[lanes] // panel), pixels // rows)
    times, last, rest = pixels // (rows * panels), pixels // rows % panels, pixels % rows
    calls_by_suffix = {"": Calls(rows, panels, times), "_last": Calls(rows, last, 1), "_rest": Calls(rest, 1, 1)}
    return {suffix: call for suffix, call in calls_by_suffix.items() if call.rows and call.panels}


def images_of(view: LayerView) -> int:
    """Return the number of images with separate products."""
    return view.outputs[0].shape[0] if view.outputs[0].layout == "NCHW" else 1


def why_not_arithmetic(view: LayerView) -> str:
    """Return why the kernels cannot compute and round the layer's sums, '' if they can."""
    return why_not_sums(depth_of(view), lambda: arithmetic(view, signed_activations=True))


def geometry(view: LayerView, lanes: int) -> dict[str, int]:
    """Return the fields of rvp_geometry."""
    pixel_step = view.inputs[0].shape[-1]
    fields = {"channels": products(view, lanes).channels, "fill": view.op.input_zero_point, "pixel_step": pixel_step}
    return windows_of(view) | fields


def function_suffix(weight_zero_point: int, rounding: str) -> str:
    """Return the suffix that selects a function of gemm_s8.S."""
    return ("z" if weight_zero_point else "") + ("s" if ROUNDINGS[rounding].is_single else "")


def block_channels(view: LayerView, lanes: int) -> int:
    """Channels per kernel step: a block, or two blocks for a single row."""
    return 4 * lanes * (2 if rows_of(view) == 1 else 1)


def block_count(view: LayerView, lanes: int) -> int:
    """Blocks of 4 * lanes channels in a product; the last ones may be padding."""
    at_a_time = block_channels(view, lanes)
    return -(-products(view, lanes).columns // at_a_time) * at_a_time // (4 * lanes)


def needs_stage(view: LayerView, lanes: int) -> bool:
    """Return whether output rows need staging: they are not whole registers, or planar."""
    columns = products(view, lanes).columns
    return columns % block_channels(view, lanes) != 0 or view.outputs[0].layout == "NCHW"
