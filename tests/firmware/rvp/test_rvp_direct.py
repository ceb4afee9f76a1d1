"""The direct convolution on Spike against the integer reference: every function, both axes, borders and remainders."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from stages.base import StageError
from stages.graph import Conv2D, LayerView
from stages.kernels.rvp.direct_conv2d import MOST_ROWS, Axis, DirectConv2d, DirectParams, Tiling
from stages.targets.load import load_target
from tests.support import random_layers as draw_layers
from tests.support.random_layers import Draw
from tests.support.spike_layers import SpikeCase, run_on_spike

TARGETS = ("rv64-rvp", "rv32-rvp")
KERNEL = DirectConv2d()


def convolution(
    draw: Draw,
    *,
    out: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    depth: int = 8,
    units: int = 8,
    batch: int = 1,
) -> LayerView:
    """int8, with any padding that leaves something of the image; `out` is the size of the output."""
    spans = [(out[i] - 1) * stride[i] + kernel[i] for i in range(2)]
    top, left, bottom, right = (min(draw.integer(0, kernel[i % 2] - 1), (spans[i % 2] - 1) // 2) for i in range(4))
    size = (spans[0] - top - bottom, spans[1] - left - right)
    op = Conv2D(
        kernel=kernel,
        stride=stride,
        dilation=(1, 1),
        padding=(top, left, bottom, right),
        **draw.clamped(),
        in_channels=depth,
        out_channels=units,
        input_zero_point=draw.zero_point(),
        weight_zero_point=0,
    )
    weights = draw.array((units, *kernel, depth), "int8")
    constants = draw.channel_constants(units, weights[0].size) | {"weights": weights}
    x = draw_layers.image("x", (batch, *size, depth), "int8", "NHWC")
    return draw_layers.view(op, [x], draw_layers.image("y", (batch, *out, units), "int8", "NHWC"), constants)


def along(axis: Axis, rows: int, columns: int) -> tuple[int, int]:
    """A pair for height and width from one for a tile's rows and columns."""
    return (rows, columns) if axis == "rows" else (columns, rows)


def case(name: str, draw: Draw, view: LayerView, params: DirectParams, *, tensorized: bool = True) -> SpikeCase:
    x = view.inputs[0]
    data = draw.array(x.shape, x.dtype)
    if draw.integer(0, 3) == 0:
        data = np.where(data > 0, 127, -128).astype(np.int8)  # saturates most
    return SpikeCase(name, KERNEL, view, [data], tensorized=tensorized, params=params)


def check(cases: list[SpikeCase], target: str) -> None:
    wrong = [run for run in run_on_spike(cases, load_target(target)) if run.differing]
    assert not wrong, wrong


def every_function() -> Iterator[tuple[int, int, int, Axis]]:
    axes: tuple[Axis, ...] = ("rows", "columns")
    for (taps, stride), most in MOST_ROWS.items():
        for rows in range(1, most + 1):
            for axis in axes:
                yield taps, stride, rows, axis


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("part", range(3))
def test_every_size_of_tile_along_both_axes(target, part):
    """Outputs of one to three tiles and every remainder; windows of 1 to 4 columns; pixels of any alignment."""
    cases = []
    for seed, (taps, stride, rows, axis) in enumerate(every_function()):
        if seed % 3 != part:
            continue
        draw = Draw(seed)
        kernel_columns, column_stride = draw.integer(1, 4), draw.integer(1, 2)
        out = along(axis, rows * draw.integer(1, 2) + draw.integer(0, rows - 1), draw.integer(1, 11))
        view = convolution(
            draw,
            out=out,
            kernel=along(axis, taps, kernel_columns),
            stride=along(axis, stride, column_stride),
            depth=draw.choose(1, 2, 3, 4, 5, 6, 7, 8, 12, 17, 20),
            units=draw.choose(8, 16, 24),
            batch=draw.choose(1, 1, 2),
        )
        cases.append(case(f"{taps} {stride} {rows} {axis} {seed}", draw, view, DirectParams(axis=axis, rows=rows)))
    check(cases, target)


@pytest.mark.parametrize("target", TARGETS)
def test_outputs_wider_than_a_strip(target):
    """Strips of eight columns and more, the last one shorter, with deep pixels and with flat ones."""
    cases = []
    for seed in range(12):
        draw = Draw(seed)
        axis: Axis = draw.choose("rows", "columns")
        rows, columns = draw.integer(1, 9), draw.integer(9, 40)
        depth = draw.choose(3, 16, 40)
        stride = draw.integer(1, 2)
        view = convolution(
            draw,
            out=along(axis, rows, columns),
            kernel=(3, 3),
            stride=along(axis, 1, stride),
            depth=depth,
        )
        cases.append(case(f"{axis} {rows} {columns} {depth}", draw, view, DirectParams(axis=axis)))
    check(cases, target)


@pytest.mark.parametrize("target", TARGETS)
def test_channels_that_need_the_wide_requantization(target):
    """In the first or the second half of a block, or in neither."""
    cases = []
    for seed in range(8):
        draw = Draw(seed)
        view = convolution(draw, out=(4, 3), kernel=(3, 3), depth=5, units=24)
        names = view.layer.constants
        arrays = dict(view.arrays)
        shift, bias = arrays[names["shift"]].copy(), arrays[names["bias"]].copy()
        wide = [seed, 8 + seed] if seed else []
        shift[wide], bias[wide] = draw.choose(-13, -20, -31), draw.integer(-(1 << 26), 1 << 26)
        arrays |= {names["shift"]: shift, names["bias"]: bias}
        cases.append(case(f"wide {seed}", draw, LayerView(view.layer, view.tensors, arrays), DirectParams(rows=4)))
    packed = [KERNEL.pack_for(c.view, DirectParams(rows=4), load_target(target))["params"] for c in cases]
    assert any((p[:, 2, 0, -1] < 0).any() for p in packed), "some block is wide"
    assert any((p[:, 2, 0, -1] >= 0).any() for p in packed), "and some block is short"
    check(cases, target)


@pytest.mark.parametrize("target", TARGETS)
def test_the_meaning_alone_without_the_micro_kernels(target):
    cases = []
    for seed, axis in enumerate(("rows", "columns") * 3):
        draw = Draw(seed)
        view = convolution(
            draw,
            out=along(axis, 5, 3),
            kernel=along(axis, 3, 2),
            stride=along(axis, 1 + seed % 2, 1),
            depth=draw.integer(1, 9),
        )
        cases.append(case(f"meaning {seed}", draw, view, DirectParams(axis=axis, rows=3), tensorized=False))
    check(cases, target)


def refusal(target: str = "rv64-rvp", **changes: object) -> str:
    """Why the kernel does not take a usual layer with these changes of its operator."""
    view = convolution(Draw(1), out=(4, 4), kernel=(3, 3), units=int(str(changes.pop("units", 8))))
    layer = view.layer.model_copy(update={"op": view.op.model_copy(update=changes)})
    return KERNEL.why_not(LayerView(layer, view.tensors, view.arrays), load_target(target))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"kernel": (4, 2)}, "a window of 4x2"),
        ({"kernel": (5, 1), "stride": (2, 1)}, "a window of 5x1"),
        ({"dilation": (1, 2)}, "dilated"),
        ({"groups": 2}, "2 groups"),
        ({"rounding": "single"}, "rounds once"),
        ({"units": 12}, "12 output channels are no multiple of 8"),
    ],
)
def test_what_the_kernel_does_not_take(changes, reason):
    why = refusal(**changes)
    assert reason in why if reason else why == ""


def test_blocks_are_smaller_on_32_bits():
    assert refusal("rv32-rvp", units=12) == ""


def test_uint8_is_left_to_the_gemm():
    view = convolution(Draw(1), out=(4, 4), kernel=(3, 3))
    tensors = {name: tensor.model_copy(update={"dtype": "uint8"}) for name, tensor in view.tensors.items()}
    assert "uint8" in KERNEL.why_not(LayerView(view.layer, tensors, view.arrays), load_target("rv64-rvp"))


def test_tiles_are_the_cheapest_that_parameters_leave_free():
    """32 rows are four tiles of 8 at least; a 1x7 window has taps along columns only, 17 of which take four tiles."""
    square = convolution(Draw(1), out=(32, 32), kernel=(3, 3), depth=16, units=16)
    assert Tiling.of(square, DirectParams(), 2).tiles() == [8, 8, 8, 8]
    assert Tiling.of(square, DirectParams(axis="columns"), 2).axis == "columns"
    assert Tiling.of(square, DirectParams(rows=9), 2).tiles() == [9, 9, 9, 5]
    flat = convolution(Draw(1), out=(17, 17), kernel=(1, 7), depth=16, units=16)
    assert Tiling.of(flat, DirectParams(), 2).axis == "columns"
    assert len(Tiling.of(flat, DirectParams(), 2).tiles()) == 4
    assert Tiling.of(flat, DirectParams(rows=9), 2).tiles() == [5, 5, 5, 2], "no function for more than 5"
    with pytest.raises(StageError, match="no tiles along the rows for a window of 1x7"):
        Tiling.of(flat, DirectParams(axis="rows"), 2)
