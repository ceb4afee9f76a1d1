"""Instruction model of the GEMM kernels: executions times counted cost, by code part.

The loop over chunks is counted by its instructions (gemm_s8.S, dot_s8.S). Each other part has a coefficient, fitted by
least squares of relative errors over the counts of layers: calls, channel blocks, pixel rows gathered by
panel.c in each of its copy modes, windows at the border, staging.
"""

from collections import Counter
from collections.abc import Mapping

from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_zero_point
from stages.backends.kernels.matrix import has_windows, rows_of
from stages.backends.kernels.windows import whole_windows
from stages.backends.riscv.kernels.rvp.base import is_bounded, rounds_once
from stages.backends.riscv.kernels.rvp.panels import (
    Calls,
    Products,
    block_count,
    calls,
    images_of,
    needs_stage,
    products,
)
from stages.ir.graph import LayerView
from stages.support.lazy import np

_UNROLL = 8  # chunks of a turn of the loop
_SHORT = 16  # bytes of a row of a window that is copied without a loop
_PANEL_ROWS = 5  # of the panels that panel.c is compiled for besides

# By lanes. `_run` are rows of a window or its taps, `_reg` registers of activations in them; a, l, u: these begin at
# registers, at words of four bytes, anywhere.
_COUNTED: Mapping[int, Mapping[str, float]] = {
    2: {
        "layer": 161, "products": 91, "calls": 74, "dots": 103, "dot_pairs": 66, "panels": 34,
        "blocks": 37.7, "twice": 19.4, "once": 14.2, "bounded": 6,
        "join_regs": 9.4, "join_ends": 16, "unstaged": 2.7,
        "step_panels": 0, "steps": 35, "lane_steps": 24, "adjusted": 4,
        "row_a": 17, "row_a_reg": 7.7, "row_l": 12.5, "row_l_reg": 8.9, "row_u": 11.5, "row_u_reg": 14.5,
        "bursts": 92, "any": 6, "rows": 0, "taps": 41, "short": 0,
        "short_run": 10.5, "short_chunk": 5.2, "nine_run": 16,
        "any_run_a": 27, "any_run_a_reg": 8, "any_run_l": 25, "any_run_l_reg": 8.2,
        "any_run_u": 32, "any_run_u_reg": 12,
        "rows_run_a": 13, "rows_run_a_reg": 6, "taps_run_a": 21, "taps_run_a_reg": 1,
        "edges": 174, "edge_a": 41, "edge_a_reg": 10.2, "edge_l": 10, "edge_l_reg": 21, "edge_u": 27,
        "edge_u_reg": 32, "edge_tap_a": 32, "edge_tap_a_reg": 6.7, "edge_tap_l": 6, "edge_tap_l_reg": 18,
        "edge_tap_u": 27, "edge_tap_u_reg": 12,
    },
    1: {
        "layer": 68, "products": 0, "calls": 172, "dots": 152, "dot_pairs": 69, "panels": 13,
        "blocks": 31, "twice": 20.5, "once": 15.3, "bounded": 4,
        "join_regs": 9.8, "join_ends": 18.4, "unstaged": 2.7,
        "step_panels": 19, "steps": 17.5, "adjusted": 4.4,
        "row_a": 19.6, "row_a_reg": 3.8, "row_u": 20.3, "row_u_reg": 6.6,
        "bursts": 103, "any": 22.5, "rows": 4, "taps": 14.5, "short": 0,
        "short_run": 6.2, "short_chunk": 7.5, "nine_run": 16,
        "any_run_a": 22, "any_run_a_reg": 3.6, "any_run_u": 26.7, "any_run_u_reg": 9.3,
        "rows_run_a": 10, "rows_run_a_reg": 2.7, "taps_run_a": 22.5, "taps_run_a_reg": 1.4,
        "edges": 131, "edge_a": 29, "edge_a_reg": 5.5, "edge_u": 27.4, "edge_u_reg": 24.7,
        "edge_tap_a": 16, "edge_tap_a_reg": 6.6, "edge_tap_u": 27, "edge_tap_u_reg": 9,
    },
}  # fmt: skip


def gemm_cost(view: LayerView, mr: int, lanes: int, panels: int = 0) -> float:
    """Return the instructions of the layer with panels of `mr` rows, `panels` at a time."""
    counted = {"loop": 1.0, "panels": 0.0, **_COUNTED[lanes]}
    return sum(count * counted[part] for part, count in work(view, mr, lanes, panels).items())


def work(view: LayerView, mr: int, lanes: int, panels: int = 0) -> Counter[str]:
    """Return how often each part runs; `loop` holds the instructions of the loop over chunks."""
    split, done, first = products(view, lanes), Counter[str](layer=1), 0
    for call in calls(view, lanes, mr, panels).values():
        part_counts = _multiplied(view, split, call, lanes)
        part_counts += (
            _windows(view, split, call, lanes, first) if has_windows(view) else _rows(view, split, call, lanes)
        )
        first += call.rows * call.panels * call.times
        for part, count in part_counts.items():
            done[part] += count * split.parts * images_of(view)
    done["products"] = split.parts * images_of(view) - 1
    return done


def _multiplied(view: LayerView, split: Products, call: Calls, lanes: int) -> Counter[str]:
    """Count the products and the storing of their results."""
    rows, blocks, chunks = call.rows, block_count(view, lanes), split.chunks
    panels = call.panels * call.times
    turns, size = -(-chunks // _UNROLL), 4 * lanes
    if rows_of(view) == 1:
        pairs = blocks // 2
        part_counts = Counter(dots=call.times, dot_pairs=pairs, loop=pairs * (17 * chunks + 4 * turns))
    else:
        part_counts = Counter(
            calls=call.times,
            panels=panels,
            blocks=panels * blocks,
            loop=panels * blocks * ((4 + 5 * rows) * chunks + 3 * turns),
        )
        part_counts["once" if rounds_once(view) else "twice"] = panels * blocks * rows
        part_counts["bounded"] = panels * blocks * rows * is_bounded(view)
    if needs_stage(view, lanes):
        if view.outputs[0].layout == "NCHW" or split.parts > 1:
            part_counts["unstaged"] = panels * rows * split.columns
        else:
            part_counts["join_regs"] = panels * rows * (split.columns // size)
            part_counts["join_ends"] = panels * rows * (split.columns % size != 0)
    return part_counts


def _rows(view: LayerView, split: Products, call: Calls, lanes: int) -> Counter[str]:
    """Count the copying of matrix rows into panels."""
    depth, size = split.depth, 4 * lanes
    stride = view.inputs[0].shape[-1] if split.parts > 1 else depth
    rows, panels = call.rows * call.panels * call.times, call.panels * call.times
    if _is_adjusted(view):
        return Counter(adjusted=rows * split.chunks) + _run("row", rows, depth, _place(stride, size), size)
    if call.rows == _PANEL_ROWS and (depth | stride) % size == 0:
        return Counter(step_panels=panels, steps=panels * (depth // size))
    if call.rows == _PANEL_ROWS and lanes == 2 and (depth | stride) % 4 == 0:
        return Counter(step_panels=panels, lane_steps=panels * (depth // 4))
    return _run("row", rows, depth, _place(stride, size), size)


def _place(steps: int, size: int) -> str:
    """Return the alignment of runs; `steps` is an OR of byte distances.

    a: register, l: lane, u: none.
    """
    return "a" if steps % size == 0 else "l" if steps % 4 == 0 else "u"


def _run(part: str, count: int, length: int, place: str, size: int) -> Counter[str]:
    """Return the work of a number of byte runs."""
    return Counter({f"{part}_{place}": count, f"{part}_{place}_reg": count * -(-length // size)})


def _windows(view: LayerView, split: Products, call: Calls, lanes: int, first: int) -> Counter[str]:
    """Count the gathering of windows into panels from output `first` on."""
    op, image, size = view.op, view.inputs[0].shape, 4 * lanes
    step, channels = image[3], split.channels
    (high, wide), is_whole = op.kernel, op.dilation[1] == 1 and image[3] == split.channels
    taps, length = (1, wide * channels) if is_whole else (wide, channels)
    place = _place(channels | step, size)
    inside, bursts, outside = _reached(view, call, first)
    adjusted = _is_adjusted(view)
    part_counts = Counter(bursts=bursts, edges=outside)
    runs, edge_runs = inside * high * taps, outside * high * (1 if is_whole else wide)
    how = "any" if adjusted or call.rows != _PANEL_ROWS else _how(view, split, length, is_whole=is_whole, size=size)
    aligned = op.dilation[0] * image[2] * channels % size == 0
    if is_whole and length == 9 and aligned and (adjusted or call.rows == _PANEL_ROWS):
        part_counts += Counter(short=inside, nine_run=runs)
    elif how == "short":
        part_counts += Counter(short=inside, short_run=runs, short_chunk=runs * -(-length // 4))
    else:
        part_counts += Counter({how: inside}) + _run(f"{how}_run", runs, length, place, size)
    part_counts += _run("edge" if is_whole else "edge_tap", edge_runs, length, place, size)
    if adjusted:
        part_counts["adjusted"] = (inside + outside) * split.chunks
    return part_counts


def _how(view: LayerView, split: Products, length: int, *, is_whole: bool, size: int) -> str:
    """Return the copy mode that panel.c selects (how_to_copy)."""
    channels, step = split.channels, view.inputs[0].shape[3]
    if not is_whole:
        return "taps" if (channels | step) % size == 0 and channels <= 2 * size else "any"
    if length <= _SHORT:
        return "short"
    return "rows" if channels % size == 0 else "any"


def _reached(view: LayerView, call: Calls, first: int) -> tuple[int, int, int]:
    """Return outputs with windows in the image, their bursts within a panel, other outputs."""
    columns, total = view.outputs[0].shape[2], call.rows * call.panels * call.times
    pixels = np.arange(first, first + total)
    here = np.isin(pixels // columns, whole_windows(view, 0)) & np.isin(pixels % columns, whole_windows(view, 1))
    begins = ((pixels - first) % call.rows == 0) | (pixels % columns == 0)
    begins[1:] |= ~here[:-1]
    inside = int(here.sum())
    return inside, int((here & begins).sum()), total - inside


def _is_adjusted(view: LayerView) -> bool:
    """Return whether activations are converted to int8 or summed for the weights' zero point."""
    return bool(INT8_OFFSET[view.inputs[0].dtype] or weight_zero_point(view))
