"""The NEON kernels under QEMU against the integer reference, over shapes that cross every tail."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from stages.graph import LayerView
from stages.kernels.kernel import KernelParams
from stages.kernels.neon.matrix import GemmParams
from stages.kernels.registry import kernels
from stages.targets.load import load_target
from tests.support import neon_layers as layers
from tests.support.random_layers import Draw
from tests.support.spike_layers import SpikeCase, run_on_spike

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("qemu-aarch64", "aarch64-linux-gnu-gcc"))),
    reason="the AArch64 compiler and QEMU are not installed",
)

KERNELS = kernels(["neon", "neon_dotprod"])
HYBRID, INTERLEAVED, PLAIN = "neon_dotprod.hybrid_4x16", "neon_dotprod.interleaved_8x12", "neon.gemm_4x4"
MATRIX = (HYBRID, INTERLEAVED, PLAIN)


def target_of(kernel: str) -> str:
    return "aarch64-dotprod" if kernel.startswith("neon_dotprod") else "aarch64"


def case(kernel: str, view: LayerView, draw: Draw, *, tensorized: bool = True, **params: int) -> SpikeCase:
    tuned: KernelParams | None = GemmParams(**params) if params else None
    inputs = [draw.array(x.shape, x.dtype) for x in view.inputs]
    return SpikeCase(f"{view.layer} {view.inputs}", KERNELS[kernel], view, inputs, tensorized, tuned)


def check(cases: list[SpikeCase]) -> None:
    assert cases
    target = load_target(target_of(cases[0].kernel.name))
    assert [run for run in run_on_spike(cases, target) if run.differing] == []


def drawn(seeds: range) -> list[Draw]:
    return [Draw(seed, ("int8", "uint8")[seed % 2]) for seed in seeds]


def convolution(draw: Draw) -> LayerView:
    """Depths with and without a tail, every other layer pointwise."""
    depth = draw.integer(1, 40)
    depth = depth if draw.integer(0, 1) else -(-depth // 8) * 8
    return layers.conv2d(draw, depth, draw.integer(1, 40), pointwise=draw.integer(0, 1) == 0)


def dense(draw: Draw) -> LayerView:
    return layers.fully_connected(draw, draw.integer(1, 9), 4 * draw.integer(1, 20), draw.integer(1, 40))


DRAWN: dict[str, tuple[str, Callable[[Draw], LayerView]]] = {
    "hybrid": (HYBRID, convolution),
    "interleaved": (INTERLEAVED, convolution),
    "plain": (PLAIN, convolution),
    "hybrid dense": (HYBRID, dense),
    "plain dense": (PLAIN, dense),
    "depthwise": ("neon.depthwise", lambda draw: layers.depthwise(draw, draw.integer(8, 30), three=False)),
    "depthwise 3x3": ("neon.depthwise3x3", lambda draw: layers.depthwise(draw, draw.integer(16, 50), three=True)),
    "depthwise 3x3 dot": (
        "neon_dotprod.depthwise3x3",
        lambda draw: layers.depthwise(draw, draw.integer(16, 50), three=True, stride=1),
    ),
    "depthwise 3x3 pairs": (
        "neon.depthwise3x3_pairs",
        lambda draw: layers.depthwise(draw, draw.integer(8, 20), three=True),
    ),
    "add": ("neon.add", lambda draw: layers.add(draw, draw.integer(16, 100))),
    "pool": ("neon.pool2d", lambda draw: layers.pool2d(draw, draw.integer(16, 50))),
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_layers(name: str) -> None:
    """The kernels on forty layers."""
    kernel, make = DRAWN[name]
    check([case(kernel, make(draw), draw) for draw in drawn(range(40))])


@pytest.mark.parametrize("name", DRAWN)
def test_the_tir_alone(name: str) -> None:
    """What the kernels are said to mean: the workload without them."""
    kernel, make = DRAWN[name]
    check([case(kernel, make(draw), draw, tensorized=False) for draw in drawn(range(100, 105))])


@pytest.mark.parametrize("kernel", MATRIX)
def test_gathered_rows_at_a_time(kernel: str) -> None:
    """Any number of windows at a time, also such that do not divide the image."""
    cases = []
    for draw in drawn(range(200, 212)):
        view = layers.conv2d(draw, draw.integer(1, 9), draw.integer(1, 20))
        cases.append(case(kernel, view, draw, rows=draw.integer(1, 13)))
    check(cases)


@pytest.mark.parametrize("kernel", [HYBRID, PLAIN])
@pytest.mark.parametrize("rounding", ["double", "single"])
def test_ties(kernel: str, rounding: str) -> None:
    """Sums that are scaled by 1/2 to 1/16: most negative and positive ones end on a half now and then."""
    cases = []
    for draw in drawn(range(0, 8, 2)):
        view = layers.fully_connected(draw, 6, 8, 24)
        arrays = dict(view.arrays)
        name = view.layer.constants
        arrays[name["weights"]] = draw.rng.integers(-1, 2, (24, 8)).astype(np.int8)
        arrays[name["bias"]] = draw.rng.integers(-40, 40, 24).astype(np.int32)
        arrays[name["multiplier"]] = np.full(24, 1 << 30, np.int32)
        arrays[name["shift"]] = draw.rng.integers(-3, 1, 24).astype(np.int32)
        op = view.op.model_copy(update={"rounding": rounding, "input_zero_point": 0, "output_zero_point": 0})
        cases.append(case(kernel, replace(view, layer=view.layer.model_copy(update={"op": op}), arrays=arrays), draw))
    check(cases)


@pytest.mark.parametrize("kernel", MATRIX)
@pytest.mark.parametrize("depth", [15, 16, 27, 64])
def test_the_largest_products(kernel: str, depth: int) -> None:
    """Weights and activations that are all -128: two such products do not fit int16."""
    draw = Draw(depth)
    view = layers.conv2d(draw, depth, 9, pointwise=True)
    name = view.layer.constants
    arrays = dict(view.arrays)
    arrays[name["weights"]] = np.full_like(view.constant("weights"), -128)
    arrays[name["bias"]] = np.full(9, -depth * 128 * 100, np.int32)
    arrays[name["shift"]] = np.full(9, -14, np.int32)
    lowest = replace(view, arrays=arrays)
    check([replace(case(kernel, lowest, draw), inputs=[np.full(lowest.inputs[0].shape, -128, np.int8)])])


def test_an_addition_reads_a_model_input_whose_layout_has_no_name() -> None:
    """`''` is NHWC; only planes are another order of elements."""
    kernel, target = KERNELS["neon.add"], load_target("aarch64")
    view = layers.add(Draw(3), 64)
    four = {name: tensor.model_copy(update={"shape": (1, 4, 4, 4)}) for name, tensor in view.tensors.items()}

    def with_layouts(**layouts: str) -> LayerView:
        changed = {name: four[name].model_copy(update={"layout": layout}) for name, layout in layouts.items()}
        return replace(view, tensors=four | changed)

    assert kernel.why_not(with_layouts(x1="NHWC", y="NHWC"), target) == ""
    assert kernel.why_not(with_layouts(x0="NCHW", x1="NCHW", y="NCHW"), target) == ""
    assert "NCHW" in kernel.why_not(with_layouts(x0="NCHW", y="NHWC"), target)
