"""Sizes up to which kernels take layers: beyond, sums or offsets no longer fit what the kernel keeps them in."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stages.backends.cortex_m.kernels.mve import rows
from stages.backends.kernels import registry
from stages.backends.kernels.sixteen_bit import not_sixteen_by_eight
from stages.count.firmware import counted
from stages.ir.graph import LayerView
from tests.conformance.draw import Draw, with_constants, with_op
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.pool2d import pool2d
from tests.conformance.operators.sixteen import conv2d as conv2d16
from tests.conformance.operators.sixteen import depthwise, fully_connected
from tests.conformance.operators.windows import Window
from tests.support.counting import calls_of, layer_graph
from tests.support.emitted import target_named


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


def test_depthwise_kernels_take_convolutions_of_one_channel() -> None:
    target = target_named("cortex-m4")
    kernel = registry.kernels(target.kernels)["arm_dsp.depthwise3x3_s8"]
    several, single = (conv2d(Draw(2), Window((5, 5), (3, 3)), channels, 2) for channels in (2, 1))
    assert not kernel.is_for(several.op) and "several channels" in kernel.why_not(several, target)
    assert kernel.is_for(single.op) and kernel.why_not(single, target) == ""


@pytest.mark.parametrize("make", [conv2d16, depthwise, fully_connected])
def test_kernels_of_16_bits_know_int8_weights_without_a_zero_point(make: Callable[[Draw], LayerView]) -> None:
    layer = make(Draw(1, "int16"))
    assert not_sixteen_by_eight(layer) == ""
    reason = "weights are not int8 constants with zero point 0"
    assert not_sixteen_by_eight(with_op(layer, weight_zero_point=1)) == reason
    wide = with_constants(layer, weights=layer.constant("weights").astype(np.int16))
    assert not_sixteen_by_eight(wide) == reason
    x = layer.inputs[0].model_copy(update={"dtype": "int8"})
    narrow = LayerView(layer.layer, {**layer.tensors, x.name: x}, layer.arrays)
    assert not_sixteen_by_eight(narrow) == f"tensor {x.name} is int8; this kernel is for int16"
