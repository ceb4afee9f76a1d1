"""What kernels leave to others, up to which sizes they take layers, and how they say so."""

from typing import Any

import numpy as np
import pytest

from stages.backends.cortex_m.kernels.mve import rows
from stages.backends.kernels import registry
from stages.backends.kernels.places import folder_names
from stages.backends.kernels.registry import kernels
from stages.backends.targets.load import load_target
from stages.count.firmware import counted
from stages.ir.graph import LayerView
from tests.conformance.draw import Draw, with_constants, with_layouts, with_op
from tests.conformance.operators import conv2d, depthwise_conv2d, fully_connected
from tests.conformance.operators.add import add
from tests.conformance.operators.pool2d import pool2d
from tests.conformance.operators.windows import Window, around
from tests.support.counting import calls_of, layer_graph
from tests.support.emitted import target_named

KERNELS = kernels(folder_names())
RVP = load_target("rv64-rvp")


def usual_convolution(units: int = 8) -> LayerView:
    return conv2d.conv2d(Draw(1), around((3, 3), (1, 1), (4, 4), Draw(1)), 8, units)


def usual_depthwise(kernel: tuple[int, int] = (5, 5)) -> LayerView:
    return depthwise_conv2d.depthwise(Draw(1), Window((20, 20), kernel), 8)


def test_sums_that_leave_32_bits_are_refused() -> None:
    layer = fully_connected.fully_connected(Draw(1), 1, 16, 4, rounding="single")
    why_not = KERNELS["rvp.dot_rows_s8"].why_not
    assert why_not(layer, RVP) == ""
    assert "sums of 65536 products" in why_not(with_op(layer, depth=65536), RVP)


def test_what_no_multiplier_rounds_is_refused_by_all_but_one_which_is_for_nothing_else() -> None:
    usual = fully_connected.fully_connected(Draw(1), 1, 16, 4, rounding="single")
    looked_up = fully_connected.stepped(usual)
    reasons = {name: k.why_not_rounding(looked_up) for name, k in KERNELS.items() if k.is_for(looked_up.op)}
    assert reasons.pop("generic.stepped_fully_connected") == ""
    without_products = {"riscv"}
    assert {name.partition(".")[0] for name in reasons} == set(folder_names()) - without_products
    assert all("no 32-bit multiplier" in reason for reason in reasons.values())
    assert KERNELS["rvp.dot_s8"].why_not(looked_up, RVP) == reasons["rvp.dot_s8"]
    assert not KERNELS["generic.stepped_fully_connected"].is_for(usual.op)


@pytest.mark.parametrize(
    "layer",
    [usual_convolution(), usual_depthwise((3, 3)), fully_connected.fully_connected(Draw(1), 1, 16, 4)],
    ids=lambda layer: str(layer.op.op),
)
def test_a_scale_that_cannot_be_rounded_is_a_reason_and_no_error(layer: LayerView) -> None:
    refused, target = with_constants(layer, shift=np.full_like(layer.constant("shift"), 30)), load_target("cortex-m4")
    own = [kernel for name, kernel in KERNELS.items() if name.startswith("arm_dsp.") and kernel.is_for(layer.op)]
    reasons = [kernel.why_not(refused, target) for kernel in own if not kernel.why_not(layer, target)]
    assert reasons and all("channel 0 has shift 30" in reason or "rounds once" in reason for reason in reasons)


def test_an_addition_reads_a_model_input_whose_layout_has_no_name() -> None:
    """`''` is NHWC; only planes are another order of elements."""
    kernel, target = KERNELS["neon.add"], load_target("aarch64")
    layer = add(Draw(3), [(1, 4, 4, 4)] * 2)
    assert kernel.why_not(with_layouts(layer, x1="NHWC", y="NHWC"), target) == ""
    assert kernel.why_not(with_layouts(layer, x0="NCHW", x1="NCHW", y="NCHW"), target) == ""
    assert "NCHW" in kernel.why_not(with_layouts(layer, x0="NCHW", y="NHWC"), target)


def why_not(target_name: str, name: str, **options: Any) -> str:
    graph, target = layer_graph(**options), target_named(target_name)
    return registry.kernels(target.kernels)[name].why_not(graph.view(graph.layers[0]), target)


MATMUL = [
    # Rounding doubles a sum: 16512 products of 255 * 255 stay below 2^30.
    *(
        (target, f"{family}.matmul_s8", "int8", 16512, "sums of 16513 products; this kernel is for 16512 or fewer")
        for target, family in (
            ("rv64-rvp", "rvp"),
            ("cortex-m4", "arm_dsp"),
            ("cortex-m55", "mve"),
            ("aarch64", "neon"),
            ("aarch64-dotprod", "neon_dotprod"),
        )
    ),
    ("cortex-m4", "generic.batch_matmul16", "int16", 131071, "sums of 131072 products; 48 bits hold 131071"),
]


@pytest.mark.parametrize(("core", "kernel", "dtype", "most", "reason"), MATMUL)
def test_depth_of_products_of_matrices(core: str, kernel: str, dtype: str, most: int, reason: str) -> None:
    for depth, expected in ((most, ""), (most + 1, reason)):
        shapes = {"shape": (1, depth), "other_shape": (depth, 1)}
        assert why_not(core, kernel, op="batch_matmul", dtype=dtype, **shapes) == expected


@pytest.mark.parametrize(("channels", "reason"), [(1985, ""), (1986, "the window spans more than 65535 bytes")])
def test_mves_offsets_of_a_window_have_16_bits(channels: int, reason: str) -> None:
    """Two rows of 17 pixels: the last one is 33 pixels behind the first."""
    options = {"op": "depthwise_conv2d", "shape": (2, 17, channels), "kernel": (2, 17), "padding": "valid"}
    assert why_not("cortex-m55", "mve.depthwise_whole_s8", **options) == reason


def column_of(kernel_y: int) -> dict[str, Any]:
    sizes = {"shape": (kernel_y, 19, 8), "kernel": (kernel_y, 6)}
    return {"op": "conv2d", "out_channels": 1, "padding": "valid", **sizes}


@pytest.mark.parametrize(("kernel_y", "expected"), [(1023, True), (1024, False)])
def test_a_strip_of_mve_is_as_long_as_offsets_of_eight_reach(kernel_y: int, expected: bool) -> None:
    graph = layer_graph(**column_of(kernel_y))
    assert rows.slides(graph.view(graph.layers[0])) is expected


def test_windows_of_more_lines_than_a_strip_holds_are_right() -> None:
    """Offsets of eight pixels, 9,600 bytes apart, would wrap at 16 bits."""
    target = target_named("cortex-m55")
    calls = [one for one in calls_of(layer_graph(**column_of(1200)), target) if one.kernel.name == "mve.gemm_s8"]
    assert calls and all(takes.count for _, takes in counted(calls, target))


@pytest.mark.parametrize(
    ("core", "kernel"),
    [
        ("cortex-m4", "arm_dsp.pool_rows"),
        ("cortex-m55", "mve.pool_rows"),
        ("rv64-rvp", "rvp.max_pool_lines"),
        ("rv64-rvp", "rvp.average_pool_lines"),
    ],
)
def test_kernels_of_lines_refuse_windows_beside_the_image(core: str, kernel: str) -> None:
    """No format has them, a graph that is built by hand may."""
    target = target_named(core)
    refuses = registry.kernels(target.kernels)[kernel].why_not
    kind = "max_pool2d" if "max" in kernel else "avg_pool2d"
    assert refuses(pool2d(Draw(1), Window((4, 4), (2, 2)), 8, op=kind), target) == ""
    for padding in ((2, 0, 0, 0), (0, 3, 0, 0)):
        beside = pool2d(Draw(1), Window((4, 4), (2, 2)), 8, op=kind, padding=padding)
        assert "outside the image" in refuses(beside, target)
