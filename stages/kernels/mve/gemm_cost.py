"""Instructions of mve.gemm_s8 and mve.dot_s8: how often each part of their code runs, and what it takes, as counted.

The numbers are those of the least squares of the relative errors over the layers of the Cortex-M55's cost table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from typing import TYPE_CHECKING

from stages.kernels.matrix import depth_of, has_windows, run_elements
from stages.kernels.mve.base import arithmetic
from stages.kernels.mve.rows import (
    CHUNK,
    columns,
    gathers,
    groups_of,
    images,
    is_short,
    multiplied,
    slides,
    windows_fields,
)

if TYPE_CHECKING:
    from stages.graph import LayerView

_FEW = 8  # channels whose columns of a strip are copied by bytes

_COUNTED: Mapping[str, float] = {
    # gemm.S and pixels.S: calls, two rows and the row that is left, of each block of columns; chunks of these
    "calls": 31, "pairs": 13, "odds": 14, "block_pair": 27, "block_odd": 18,
    "pair_chunk": 15.8, "odd_chunk": 9.9, "short": 18, "short_block": 18,
    # columns.S: calls and columns, four rows and each row that is left
    "single_calls": 46, "singles": 28, "quad": 25.3, "quad_chunk": 10.4, "quad_rest": 15.6,
    "one": 22.4, "one_chunk": 3.5, "one_rest": 2.2,
    # strip.c: lines of a strip and its columns, those of few channels; what leaves the image
    "lines": 34, "columns": 5.2, "column_chunk": 3.2, "few_lines": 111, "few_columns": 0.5, "few_bytes": 0.5,
    "cut_strips": 251, "edge_strips": 17,
    # windows.c: calls, rows, their runs and 16 bytes of these; rows whose pixels are apart; those that leave the image
    "gathers": 55, "rows": 48, "runs": 1.6, "run_chunk": 5.6, "apart": 17.6, "apart_runs": 1.3, "edges": 26.5,
    # four outputs that are requantized in mode lowered (rounding.py)
    "lowered": 2, "layer": 8,
}  # fmt: skip


def gemm_cost(view: LayerView, tile: int) -> float:
    """Of the layer, `tile` rows at a time."""
    return sum(count * _COUNTED[part] for part, count in work(view, tile).items())


def work(view: LayerView, tile: int) -> Counter[str]:
    """How often each part runs."""
    done = Counter(layer=1)
    for rows, times in Counter(_tiles(view, tile)).items():
        found = _multiplied(view, rows) + (_strip(view, rows) if slides(view) else Counter[str]())
        for part, count in found.items():
            done[part] += times * groups_of(view) * count
    if gathers(view) and not slides(view):
        done += _gathered(view, tile)
    elif slides(view):
        done += _cut(view, tile)
    return done


def _tiles(view: LayerView, tile: int) -> Iterator[int]:
    """Rows of each product; those of a strip are of one row of pixels."""
    count, rows = images(view)
    width = view.outputs[0].shape[2] if slides(view) else rows
    one = [*repeat(tile, width // tile), *([width % tile] if width % tile else [])]
    return chain.from_iterable(repeat(one, count * (rows // width)))


def _multiplied(view: LayerView, rows: int) -> Counter[str]:
    """Blocks of columns, and single ones, of so many rows of a group."""
    split, (whole, rest) = columns(view), divmod(multiplied(view), CHUNK)
    found, blocks, chunks = Counter[str](), len(split.starts), whole + (rest > 0)
    if blocks:
        found["calls"] = 1 + (0 < split.whole < blocks)  # the last block overlaps the one before
        if is_short(view):
            found += Counter(short=blocks * rows, short_block=blocks)
        else:
            pairs, odd = divmod(rows, 2)
            found += Counter(block_pair=blocks * pairs, block_odd=blocks * odd, pairs=pairs, odds=odd)
            found += Counter(pair_chunk=blocks * pairs * chunks, odd_chunk=blocks * odd * chunks)
    singles, (quads, ones) = split.singles, divmod(rows, 4)
    if singles:
        found += Counter(single_calls=1, singles=singles, quad=singles * quads, one=singles * ones)
        found += Counter(quad_chunk=singles * quads * whole, one_chunk=singles * ones * whole)
        if rest:
            found += Counter(quad_rest=singles * quads, one_rest=singles * ones)
    if arithmetic(view).mode == "lowered":
        found["lowered"] = blocks * rows + singles * (quads + ones)
    return found


def _strip(view: LayerView, rows: int) -> Counter[str]:
    """The columns of so many neighbouring windows of a group."""
    (high, wide), step = view.op.kernel, view.op.stride[1]
    channels, copied = view.op.in_channels // groups_of(view), ((rows - 1) * step + wide) * high
    if groups_of(view) == 1 and channels <= _FEW:
        return Counter(few_lines=high, few_columns=copied, few_bytes=copied * channels)
    return Counter(lines=high, columns=copied, column_chunk=copied * -(-channels // CHUNK))


def _cut(view: LayerView, tile: int) -> Counter[str]:
    """Strips that leave the image."""
    rows, inner = (_inside(view, axis) for axis in (0, 1))
    strips = len(list(_tiles(view, tile)))
    cut = (len(rows) - sum(rows)) * strips // len(rows)
    return Counter(cut_strips=cut * groups_of(view), edge_strips=strips * groups_of(view) * (not all(inner)))


def _gathered(view: LayerView, tile: int) -> Counter[str]:
    """Rows that are copied one by one."""
    groups, (count, rows), depth = groups_of(view), images(view), depth_of(view)
    run = run_elements(view) if groups == 1 else view.op.in_channels // groups
    copied, runs = groups * count * rows, depth // run
    found = Counter(
        gathers=len(list(_tiles(view, tile))) * groups,
        rows=copied,
        runs=copied * runs,
        run_chunk=copied * runs * -(-run // CHUNK),
    )
    if not windows_fields(view)["neighbours"]:
        found += Counter(apart=copied, apart_runs=copied * runs)
    if has_windows(view):
        high, wide = (_inside(view, axis) for axis in (0, 1))
        found["edges"] = (len(high) * len(wide) - sum(high) * sum(wide)) * count * groups
    return found


def _inside(view: LayerView, axis: int) -> list[bool]:
    """Of each row or column of outputs, whether its windows lie inside the image along the axis."""
    op, count = view.op, view.outputs[0].shape[1 + axis]
    last = view.inputs[0].shape[1 + axis] - (op.kernel[axis] - 1) * op.dilation[axis]
    return [0 <= number * op.stride[axis] - op.padding[axis] < last for number in range(count)]
