"""Instructions of rvp.depthwise_planes_s8, from its assembly and C loops."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from stages.backends.riscv.kernels.rvp.base import is_bounded, rounds_once
from stages.ir.graph import LayerView

if TYPE_CHECKING:
    from stages.backends.riscv.kernels.rvp.plane_layout import Plane

FEW_COLUMNS = 6  # of outputs that are computed one after the other, as depthwise_rows.h has it


def layer_cost(view: LayerView, plane: Plane) -> float:
    """Return the instructions of all channel groups.

    The last group may have half the columns, twice the moves, and its own padding.
    """
    groups = -(-view.op.out_channels // (4 * plane.lanes))
    group, last = _group(view, plane, halved=False), 0.0
    bands = _bands(plane)
    filled = 1.75 * sum(plane.lines(band) for band in bands) * plane.line_registers if plane.padded else 0.0
    fills = filled if groups > plane.halved(view) else 0.0
    if plane.halved(view):
        groups -= 1
        last = _group(view, plane, halved=True)
        fills += filled
    return float(view.outputs[0].shape[0] * (groups * group + last + fills + 210))


def _bands(plane: Plane) -> list[int]:
    """Output rows of each band."""
    return [after - before for before, after in pairwise([*range(0, plane.out[0], plane.band), plane.out[0]])]


def _group(view: LayerView, plane: Plane, *, halved: bool) -> float:
    columns = -(-plane.out[1] // 2) if halved else plane.out[1]
    rows = plane.out[0] * _row(view, plane, columns)
    if plane.direct:
        return rows + 31
    around = 232 + (75 if view.op.depth_multiplier > 1 else 0)
    return rows + _written(view, plane, halved=halved) + _brought(view, plane, columns) + around * len(_bands(plane))


def _row(view: LayerView, plane: Plane, columns: int) -> float:
    """Cost of an output row of a group: four outputs at a time, then the rest.

    With few weights, outputs are computed one by one.
    """
    taps, direct, moved = plane.taps(view), plane.direct, _moved(view, plane)
    if taps.are_few and columns >= FEW_COLUMNS and not is_bounded(view):
        few = taps.cost_of_few(direct=direct, load=moved) + moved - 1 + (15 if rounds_once(view) else 23)
        return columns // 2 * 2 * few + (_block(view, plane, 1) if columns % 2 else 0) + (60 if direct else 82)
    blocks = columns // 4 * (_block(view, plane, 4) + (10 if direct else 8))
    rest = columns % 4
    return blocks + (_block(view, plane, rest) + rest + 1 if rest else 3) + 21


def _moved(view: LayerView, plane: Plane) -> int:
    """Cost of moving a pixel of a group in or out: a register or two lanes."""
    return 3 if plane.by_lanes(view) else 1


def _block(view: LayerView, plane: Plane, outputs: int) -> int:
    """Cost of a block of neighbouring outputs: taps, start and end of sums, bytes."""
    ends = 29 + 17 * outputs if rounds_once(view) else 33 + 21 * outputs
    bounds = 3 + 3 * outputs if is_bounded(view) else 0
    moved = _moved(view, plane)
    return plane.taps(view).cost(outputs, direct=plane.direct, load=moved) + ends + bounds + (moved - 1) * outputs


def _brought(view: LayerView, plane: Plane, columns: int) -> float:
    """Cost of copying image pixels into the planes of a group: its columns, or both row halves."""
    halved = columns < plane.out[1]
    bands, stride = _bands(plane), plane.stride[1]
    starts = [row * plane.stride[0] - plane.padding[0] for row in range(0, plane.out[0], plane.band)]
    lines = sum(
        max(min(plane.lines(band) + start, plane.size[0]) - max(start, 0), 0)
        for band, start in zip(bands, starts, strict=True)
    )
    of_phase, cost = plane.phase_columns - (plane.out[1] - columns), 0.0
    for left in (plane.padding[1], plane.padding[1] - columns * stride)[: 1 + halved]:
        for first in range(-left, plane.phases - left):
            begin = max(-(first // stride), 0)
            end = min(of_phase, -((first - plane.size[1]) // stride))
            cost += 60 * len(bands) + lines * _line(view, plane.lanes, max(end - begin, 0), halved=halved)
    return cost


def _line(view: LayerView, lanes: int, pixels: int, *, halved: bool) -> float:
    """Cost of copying a line of neighbouring pixels of a group (depthwise_plane_pixels.h)."""
    channels, multiplier, size = view.op.out_channels, view.op.depth_multiplier, 4 * lanes
    lane_channels = min(4 if halved else size, channels)
    if multiplier > 1:
        if lane_channels == size and multiplier in (2, 4):
            return 8 + pixels * (9 + 3 * lanes if multiplier == 2 else 12.5)
        sources = -(-lane_channels // multiplier)
        return 8 + pixels * (11 - lanes if sources == 1 else 14.5 + 7 * sources)
    if channels % size == 0:
        if view.inputs[0].dtype == "int8":
            return 26 - 4 * lanes + pixels // 4 * (16 - lanes) + pixels % 4 * (4 + lanes)
        return 8 + pixels * (9 - lanes)
    if channels % 4 == 0:
        return 8 + pixels * 11
    return 8 + pixels * (6 + 4 * lane_channels if lane_channels < 4 else 21 - lanes)


def _written(view: LayerView, plane: Plane, *, halved: bool) -> float:
    """Cost of writing result rows that are not whole registers in the output."""
    channels, size = view.op.out_channels, 4 * plane.lanes
    if channels % size == 0:
        return 0.0
    lane_channels = min(4 if halved else size, channels)
    few = 12 + 3.2 * lane_channels if lane_channels < size else 2 * size + 3.5
    pixel = few if channels % 4 else 6.0 if halved else 9.0
    return plane.out[0] * (plane.out[1] * pixel + (140 if halved else 50))
