"""Instruction model of mve.gemm_s8 and mve.dot_s8: executions times cost by code part.

The coefficients of single columns are counted in the assembly; the others were fitted to counts of layers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from math import prod

from stages.backends.cortex_m.kernels.mve.base import arithmetic
from stages.backends.cortex_m.kernels.mve.rows import (
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
from stages.backends.kernels.eight_bit import weight_zero_point
from stages.backends.kernels.matrix import depth_of, has_windows, run_elements
from stages.backends.kernels.windows import taps_inside, whole_windows
from stages.ir.graph import LayerView

_LANES = 8  # pixels of up to as many channels that go at a time

_COUNTED: Mapping[str, float] = {
    # blocks of columns: calls, two rows and the row that is left, of each block of columns; chunks of these
    "calls": 34, "pairs": 15, "odds": 12, "block_pair": 27, "block_odd": 18,
    "pair_chunk": 15.7, "odd_chunk": 9.9, "short": 18, "short_block": 15,
    # single columns: calls and columns, four rows and each row that is left
    "single_calls": 46, "singles": 28, "quad": 20, "quad_chunk": 10, "quad_rest": 11,
    "one": 20, "one_chunk": 3.5, "one_rest": 4,
    # strip.c: strips and their lines inside of the image; columns that are filled; 16 bytes of lines that are copied as
    # they are; vectors of few channels, and eight pixels of these; runs of pixels, and 16 bytes of them
    "strips": 14, "lines": 95, "filled": 6.4, "flat": 3.2, "few_vectors": 20, "few_eights": 2.7, "pixel_runs": 13.6,
    "pixels": 4.4,
    # windows.c: calls, rows, their runs and 16 bytes of these; rows whose pixels are apart; those that leave the image
    "gathers": 55, "rows": 47.7, "runs": 1.6, "run_chunk": 5.6, "apart": 18, "apart_runs": 1.2, "edges": 26.3,
    # rows that are summed for the weights' zero point, and their chunks; four outputs that are requantized in mode
    # lowered (rounding.py)
    "summed": 22, "summed_chunks": 3, "lowered": 2, "layer": 8,
}  # fmt: skip


def gemm_cost(view: LayerView, tile: int) -> float:
    """Return the instructions of the layer, `tile` rows at a time."""
    return sum(count * _COUNTED[part] for part, count in work(view, tile).items())


def copies_cost(view: LayerView, tile: int) -> float:
    """Return the instructions that copy rows to scratch, `tile` rows at a time."""
    depth = depth_of(view)
    return sum(20 + 3 * -(-rows * depth // CHUNK) for rows in _tiles(view, tile))


def work(view: LayerView, tile: int) -> Counter[str]:
    """Return how often each part runs."""
    done = Counter(layer=1)
    for rows, times in Counter(_tiles(view, tile)).items():
        for part, count in _multiplied(view, rows).items():
            done[part] += times * groups_of(view) * count
    if slides(view):
        done += _strips(view, tile)
    elif gathers(view):
        done += _gathered(view, tile)
    if weight_zero_point(view):
        count, rows = images(view)
        summed = groups_of(view) * count * rows
        done += Counter(summed=summed, summed_chunks=summed * -(-depth_of(view) // CHUNK))
    return done


def _tiles(view: LayerView, tile: int) -> Iterator[int]:
    """Return the rows of each product; the rows of a strip belong to one pixel row."""
    count, rows = images(view)
    width = view.outputs[0].shape[2] if slides(view) else rows
    return chain.from_iterable(repeat(_row_of_tiles(view, tile), count * (rows // width)))


def _row_of_tiles(view: LayerView, tile: int) -> list[int]:
    """Count the tiles of a pixel row, or of all rows where they are independent of pixel rows."""
    width = view.outputs[0].shape[2] if slides(view) else images(view)[1]
    return [*repeat(tile, width // tile), *([width % tile] if width % tile else [])]


def _multiplied(view: LayerView, rows: int) -> Counter[str]:
    """Count column blocks and single columns for the rows of a group."""
    split, (full_chunks, rest) = columns(view), divmod(multiplied(view), CHUNK)
    work_counts, blocks, chunks = Counter[str](), len(split.starts), full_chunks + (rest > 0)
    if blocks:
        work_counts["calls"] = 1 + (0 < split.whole < blocks)  # the last block overlaps the one before
        if is_short(view):
            work_counts += Counter(short=blocks * rows, short_block=blocks)
        else:
            pairs, odd = divmod(rows, 2)
            work_counts += Counter(block_pair=blocks * pairs, block_odd=blocks * odd, pairs=pairs, odds=odd)
            work_counts += Counter(pair_chunk=blocks * pairs * chunks, odd_chunk=blocks * odd * chunks)
    singles, (quads, ones) = split.singles, divmod(rows, 4)
    if singles:
        work_counts += Counter(single_calls=1, singles=singles, quad=singles * quads, one=singles * ones)
        work_counts += Counter(quad_chunk=singles * quads * full_chunks, one_chunk=singles * ones * full_chunks)
        if rest:
            work_counts += Counter(quad_rest=singles * quads, one_rest=singles * ones)
    if arithmetic(view).mode == "lowered":
        work_counts["lowered"] = blocks * rows + singles * (quads + ones)
    return work_counts


def _strips(view: LayerView, tile: int) -> Counter[str]:
    """Count copies and fills per line of strips of neighbouring windows."""
    op, width, groups, (batch, strips, _, _) = view.op, view.inputs[0].shape[2], groups_of(view), view.outputs[0].shape
    (high, wide), inside = op.kernel, sum(taps_inside(view, 0))
    work_counts, first = Counter[str](), 0
    for rows in _row_of_tiles(view, tile):
        count, x = (rows - 1) * op.stride[1] + wide, first * op.stride[1] - op.padding[1]
        first += rows
        copied = max(min(width - x, count) - max(-x, 0), 0)
        work_counts["strips"] += strips
        work_counts["lines"] += inside
        work_counts["filled"] += inside * (count - copied) + (strips * high - inside) * count
        for part, number in _copied(view, copied).items():
            work_counts[part] += inside * number
    return Counter({part: number * groups * batch for part, number in work_counts.items()})


def _copied(view: LayerView, pixels: int) -> Counter[str]:
    """Count the copy of a line's pixels into a strip."""
    groups, work_counts = groups_of(view), Counter[str]()
    channels = view.op.in_channels // groups
    if groups == 1 and view.op.kernel[0] == 1:
        return Counter(flat=-(-pixels * channels // CHUNK))
    if groups == 1 and channels <= _LANES:
        eights, pixels = divmod(pixels, _LANES)
        work_counts = Counter(few_vectors=channels, few_eights=channels * eights)
    if pixels:
        work_counts += Counter(pixel_runs=1, pixels=pixels * -(-channels // CHUNK))
    return work_counts


def _gathered(view: LayerView, tile: int) -> Counter[str]:
    """Count rows that are copied one by one."""
    groups, (count, rows), depth = groups_of(view), images(view), depth_of(view)
    run = run_elements(view) if groups == 1 else view.op.in_channels // groups
    copied, runs = groups * count * rows, depth // run
    work_counts = Counter(
        gathers=len(list(_tiles(view, tile))) * groups,
        rows=copied,
        runs=copied * runs,
        run_chunk=copied * runs * -(-run // CHUNK),
    )
    if not windows_fields(view)["neighbours"]:
        work_counts += Counter(apart=copied, apart_runs=copied * runs)
    if has_windows(view):
        high, wide = (len(whole_windows(view, axis)) for axis in (0, 1))
        work_counts["edges"] = (prod(view.outputs[0].shape[1:3]) - high * wide) * count * groups
    return work_counts
