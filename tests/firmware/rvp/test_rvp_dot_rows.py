"""Fully connected layers with the lanes along the depth, on Spike against the integer reference: every remainder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from stages.compile.toolchain import Source
from stages.graph import FullyConnected, LayerView
from stages.kernels.rvp.base import clip_word
from stages.kernels.rvp.fully_connected import FullyConnectedRows, layer_arithmetic
from stages.simulators.bench import compile_and_run_c
from stages.targets.load import load_target
from tests.support import random_layers as draw_layers
from tests.support.random_layers import Draw
from tests.support.spike_layers import SpikeCase, run_on_spike

TARGETS = ("rv64-rvp", "rv32-rvp")
KERNEL = FullyConnectedRows()
every_target = pytest.mark.parametrize("target", TARGETS)


def fully_connected(draw: Draw, units: int, depth: int, **fields: object) -> LayerView:
    """A layer of one row, rounding once or twice, weights of uint8 layers mostly with a zero point."""
    dtype, weight_zero_point = draw_layers.weight_type(draw)
    op = FullyConnected(
        **draw.clamped(),
        batch=1,
        depth=depth,
        units=units,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
        rounding=draw.choose("double", "single"),
    ).model_copy(update=fields)
    constants = draw.channel_constants(units, depth) | {"weights": draw.array((units, depth), dtype)}
    if draw.integer(0, 3) == 0:
        del constants["bias"]
    x, y = (draw_layers.image(name, (1, size), draw.dtype, "") for name, size in (("x", depth), ("y", units)))
    return draw_layers.view(op, [x], y, constants)


def with_arrays(view: LayerView, **arrays: np.ndarray) -> LayerView:
    """The layer with other constants, by role."""
    return replace(view, arrays={**view.arrays, **{view.layer.constants[role]: a for role, a in arrays.items()}})


def case(name: str, draw: Draw, view: LayerView, *, tensorized: bool = True) -> SpikeCase:
    """Any values; one time in four only the extremes, which saturate most."""
    x = view.inputs[0]
    data, bounds = draw.array(x.shape, x.dtype), np.iinfo(x.dtype)
    if draw.integer(0, 3) == 0:
        data = np.where(data > np.median(data), bounds.max, bounds.min).astype(x.dtype)
    return SpikeCase(name, KERNEL, view, [data], tensorized=tensorized)


def layers(shapes: Iterable[tuple[int, int]], *, tensorized: bool = True) -> list[SpikeCase]:
    """A layer of each type for each pair of units and depth."""
    made = []
    for seed, (units, depth) in enumerate(shapes):
        for dtype in ("int8", "uint8"):
            draw = Draw(seed, dtype)
            view = fully_connected(draw, units, depth)
            made.append(case(f"{units} x {depth} {dtype}", draw, view, tensorized=tensorized))
    return made


def check(cases: list[SpikeCase], target: str) -> None:
    wrong = [run for run in run_on_spike(cases, load_target(target)) if run.differing]
    assert not wrong, wrong


@every_target
def test_every_number_of_units_in_a_group_and_behind_it(target: str) -> None:
    check(layers((units, 5 + 3 * units) for units in (*range(1, 10), 11, 12, 13, 15, 16, 17, 23, 24)), target)


@every_target
def test_depths_that_leave_every_remainder_of_a_register_and_of_the_loop(target: str) -> None:
    check(layers((depth * 5 % 9 + 1, depth) for depth in range(1, 41)), target)


@every_target
def test_long_rows(target: str) -> None:
    """Eight registers a turn: 64 bytes on RV64, 32 on RV32."""
    check(layers([(4, 4000), (2, 256), (10, 64), (1, 1027), (9, 509), (16, 640)]), target)


@every_target
def test_units_that_need_the_wide_requantization(target: str) -> None:
    """In some quads and not in others, rounding once and twice."""
    made = []
    for seed in range(12):
        for dtype in ("int8", "uint8"):
            draw = Draw(seed, dtype)
            view = fully_connected(draw, 13, 9 + seed, rounding=("single", "double")[seed % 2])
            shift = view.constant("shift").copy()
            bias = np.zeros(13, np.int32) if not view.has("bias") else view.constant("bias").copy()
            chosen = draw.rng.random(13) < 0.2
            shift[chosen] = draw.rng.choice(np.array([-2, -13, -15, -20, -31], np.int32), int(chosen.sum()))
            bias[chosen] = draw.rng.integers(-(1 << 26), 1 << 26, int(chosen.sum()))
            arrays = {"shift": shift} | ({"bias": bias} if view.has("bias") else {})
            made.append(case(f"wide {seed} {dtype}", draw, with_arrays(view, **arrays)))
    params = [KERNEL.pack_for(c.view, None, load_target(target))["params"] for c in made]
    marks = np.concatenate([p[:, 2, load_target(target).word_bits // 32 - 1] < 0 for p in params])
    assert marks.any(), "some quad is wide"
    assert not marks.all(), "and some quad is short"
    check(made, target)


@every_target
def test_halves_of_both_signs(target: str) -> None:
    """Sums divided by 4 (rounding once: 8) take the wide way, by 32 the short one; some are halves."""
    made = []
    for seed in range(8):
        for dtype, rounding in (("int8", "single"), ("int8", "double"), ("uint8", "single"), ("uint8", "double")):
            draw, wide = Draw(seed, dtype), seed % 2
            fields = {"rounding": rounding, "act_min": int(np.iinfo(dtype).min), "input_zero_point": 0}
            middle = 0 if dtype == "int8" else 128
            view = fully_connected(draw, 15, 4, **fields, output_zero_point=middle, weight_zero_point=0)
            weights = draw.rng.integers(0, 2, (15, 4)).astype(view.constant("weights").dtype)
            shift = np.full(15, {"single": -2, "double": -1}[rounding] if wide else -4, np.int32)
            arrays = {"weights": weights, "shift": shift, "multiplier": np.full(15, 1 << 30, np.int32)}
            if view.has("bias"):
                arrays["bias"] = draw.rng.integers(-400, 100, 15).astype(np.int32)
            x = draw.rng.integers(0, 60, (1, 4)).astype(dtype)
            name = f"halves {seed} {dtype} {rounding}"
            made.append(SpikeCase(name, KERNEL, with_arrays(view, **arrays), [x]))
    check(made, target)


def extremes(dtype: str) -> list[LayerView]:
    """Sums as large as they get: activations and weights at their bounds, zero points at the opposite ones."""
    made = []
    bounds = np.iinfo(dtype)
    for low in (True, False):
        draw = Draw(int(low), dtype)
        weight_zero_point = 0 if dtype == "int8" else int(bounds.max if low else bounds.min)
        view = fully_connected(
            draw,
            5,
            2003,
            input_zero_point=int(bounds.min if low else bounds.max),
            weight_zero_point=weight_zero_point,
            act_min=int(bounds.min),
        )
        weights = np.full((5, 2003), bounds.min if low else bounds.max, dtype)
        weights[1] = bounds.max if low else bounds.min
        multiplier, shift = np.full(5, 1 << 30, np.int32), np.full(5, -20, np.int32)
        made.append(with_arrays(view, weights=weights, multiplier=multiplier, shift=shift))
    return made


@every_target
def test_extreme_sums(target: str) -> None:
    made = []
    for dtype in ("int8", "uint8"):
        bounds = np.iinfo(dtype)
        for number, view in enumerate(extremes(dtype)):
            for value in (bounds.min, bounds.max):
                data = np.full((1, 2003), value, dtype)
                made.append(SpikeCase(f"extremes {dtype} {number} {value}", KERNEL, view, [data]))
    check(made, target)


@every_target
def test_the_meaning_alone_without_the_micro_kernel(target: str) -> None:
    check(layers([(1, 1), (3, 8), (4, 7), (9, 13), (16, 16), (22, 5)], tensorized=False), target)


_BEHIND_THE_END = """
#include "bench.h"
#include "dot_rows.h"
static int8_t weights[WEIGHTS] __attribute__((aligned(16))) = {%s};
static int32_t params[] __attribute__((aligned(16))) = {%s};
static int8_t x[24] __attribute__((aligned(16))), out[8] __attribute__((aligned(16)));
int main(void)
{
    for (int behind = 0; behind < 256; behind += 15) {
        for (int k = 0; k < 24; k++)
            x[k] = (int8_t)(k < 13 ? 17 * k : behind);
        for (int u = 0; u < 8; u++)
            out[u] = 99;
        rvp_dot_rows_%s(x, weights, params, out, STEPS, 5, CLIP, ZERO_POINT);
        for (int u = 0; u < 8; u++)
            printf("%%d%%c", out[u], u < 7 ? ' ' : '\\n');
    }
    return 0;
}
"""


@every_target
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_nothing_behind_the_end_of_a_row_counts_and_nothing_behind_the_units_is_written(
    target: str, dtype: str
) -> None:
    """Thirteen elements leave a part of a register; weights have a zero point in uint8 layers."""
    core, draw = load_target(target), Draw(4, dtype)
    view = fully_connected(draw, 5, 13, rounding="single", weight_zero_point=0 if dtype == "int8" else 77)
    packed = KERNEL.pack_for(view, None, core)
    defines = {
        "WEIGHTS": packed["weights"].size,
        "STEPS": -(-13 // (core.word_bits // 8)),
        "CLIP": f"(int){clip_word(view)}LL",
        "ZERO_POINT": layer_arithmetic(view).weight_zero_point,
    }
    suffix = {"int8": "s8s", "uint8": "u8s"}[dtype]
    numbers = [", ".join(str(value) for value in packed[key].reshape(-1).tolist()) for key in ("weights", "params")]
    text = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    run = compile_and_run_c(
        core,
        [Source(KERNEL.folder / source) for source in KERNEL.sources],
        text + _BEHIND_THE_END % (*numbers, suffix),
        include=[KERNEL.folder],
    )
    lines = set(run.stdout.splitlines())
    assert len(run.stdout.splitlines()) == 18
    assert len(lines) == 1, lines
    assert lines.pop().split()[5:] == ["99"] * 3


def refusal(**fields: object) -> str:
    """Why the kernel does not take a usual layer with these changes of its operator."""
    view = fully_connected(Draw(1), 4, 16, rounding="single")
    layer = view.layer.model_copy(update={"op": view.op.model_copy(update=fields)})
    return KERNEL.why_not(replace(view, layer=layer), load_target("rv64-rvp"))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, ""),
        ({"batch": 2}, "a batch of 2; this kernel is for one row"),
        ({"depth": 65536}, "a sum has 65536 products"),
    ],
)
def test_what_the_kernel_does_not_take(fields: Mapping[str, object], reason: str) -> None:
    why = refusal(**fields)
    assert reason in why if reason else why == ""


def test_weights_are_padded_along_the_depth_alone() -> None:
    view = fully_connected(Draw(1), 5, 13, weight_zero_point=0)
    for target, padded in (("rv64-rvp", 16), ("rv32-rvp", 16)):
        packed = KERNEL.pack_for(view, None, load_target(target))
        assert packed["weights"].nbytes == 5 * padded
        assert packed["params"].nbytes == 2 * 48
