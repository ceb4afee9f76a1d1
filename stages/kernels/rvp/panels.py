"""Panels of rows and blocks of channels: how the GEMM kernels see a product of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.kernels.eight_bit import why_not_sums
from stages.kernels.matrix import WINDOWS, columns_of, depth_of, rows_of, windows_of
from stages.kernels.rvp.base import arithmetic
from stages.kernels.structure import Structure

if TYPE_CHECKING:
    from stages.graph import LayerView


# Scratch for the panels of one call by lanes: as many panels as fit share what a call costs.
PANEL_BYTES = {1: 2048, 2: 4096}
GEOMETRY = Structure("rvp_geometry", (*WINDOWS, "fill"))  # of panel.h


def why_not_arithmetic(view: LayerView) -> str:
    """Why the layer's sums are not what the kernels compute and round, '' if they are."""
    return why_not_sums(depth_of(view), lambda: arithmetic(view, signed_activations=True))


def geometry(view: LayerView) -> dict[str, int]:
    """The fields of rvp_geometry."""
    return windows_of(view) | {"fill": view.op.input_zero_point}


def function_suffix(weight_zero_point: int, rounding: str) -> str:
    """Which variant of the functions of gemm_s8.S."""
    return ("z" if weight_zero_point else "") + ("s" if rounding == "single" else "")


def block_channels(view: LayerView, lanes: int) -> int:
    """Channels that the kernel computes at a time: a block, or two for a single row."""
    return 4 * lanes * (2 if rows_of(view) == 1 else 1)


def block_count(view: LayerView, lanes: int) -> int:
    """Blocks of 4 * lanes channels, the last ones maybe without channels."""
    at_a_time = block_channels(view, lanes)
    return -(-columns_of(view) // at_a_time) * at_a_time // (4 * lanes)


def needs_stage(view: LayerView, lanes: int) -> bool:
    """Whether rows of output cannot be written in place: not whole registers, or planar."""
    columns = columns_of(view)
    return columns % block_channels(view, lanes) != 0 or view.outputs[0].layout == "NCHW"
