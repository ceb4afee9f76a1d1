"""What kernels leave to others, and how they say so."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from stages.backends.kernels.places import folder_names
from stages.backends.kernels.registry import kernels
from stages.backends.targets.load import load_target
from stages.ir.graph import LayerView
from tests.conformance.draw import Draw, with_constants, with_layouts, with_op
from tests.conformance.operators import conv2d, depthwise_conv2d, fully_connected
from tests.conformance.operators.add import add
from tests.conformance.operators.windows import Window, around

KERNELS = kernels(folder_names())
RVP = load_target("rv64-rvp")


def with_dtype(layer: LayerView, dtype: str) -> LayerView:
    tensors = {name: tensor.model_copy(update={"dtype": dtype}) for name, tensor in layer.tensors.items()}
    return LayerView(layer.layer, tensors, layer.arrays)


def usual_convolution(units: int = 8) -> LayerView:
    return conv2d.conv2d(Draw(1), around((3, 3), (1, 1), (4, 4), Draw(1)), 8, units)


def usual_depthwise(kernel: tuple[int, int] = (5, 5)) -> LayerView:
    return depthwise_conv2d.depthwise(Draw(1), Window((20, 20), kernel), 8)


DIRECT, DEPTHWISE = usual_convolution(), usual_depthwise()
DENSE = fully_connected.fully_connected(Draw(1), 1, 16, 4, rounding="single")


@pytest.mark.parametrize(
    ("kernel", "layer", "fields", "reason"),
    [
        ("direct_s8", DIRECT, {}, ""),
        ("direct_s8", DIRECT, {"kernel": (4, 2)}, "a window of 4x2"),
        ("direct_s8", DIRECT, {"kernel": (5, 1), "stride": (2, 1)}, "a window of 5x1"),
        ("direct_s8", DIRECT, {"dilation": (1, 2)}, "dilated"),
        ("direct_s8", DIRECT, {"groups": 2}, "2 groups"),
        ("direct_s8", DIRECT, {"rounding": "single"}, "rounds once"),
        ("direct_s8", usual_convolution(12), {}, "12 output channels are not a multiple of 8"),
        ("depthwise_s8", DEPTHWISE, {}, ""),
        ("depthwise_s8", usual_depthwise((6, 7)), {}, ""),
        ("depthwise_s8", DEPTHWISE, {"stride": (3, 1)}, ""),
        ("depthwise_s8", DEPTHWISE, {"stride": (3, 3)}, "neither of the strides is 1 or 2"),
        ("depthwise_s8", DEPTHWISE, {"dilation": (1, 2)}, ""),
        ("depthwise_s8", DEPTHWISE, {"dilation": (1, 2), "stride": (1, 2)}, "a dilated window with a stride"),
        ("depthwise_s8", DEPTHWISE, {"rounding": "single"}, "rounds once"),
        ("dot_rows_s8", DENSE, {}, ""),
        ("dot_rows_s8", DENSE, {"batch": 2}, "2 rows; this kernel supports one"),
        ("dot_rows_s8", DENSE, {"depth": 65536}, "sums of 65536 products"),
    ],
)
def test_layers_of_rvp(kernel: str, layer: LayerView, fields: Mapping[str, Any], reason: str) -> None:
    why = KERNELS[f"rvp.{kernel}"].why_not(with_op(layer, **fields), RVP)
    assert reason in why if reason else why == ""


def test_direct_convolutions_have_smaller_blocks_on_32_bits_and_leave_uint8_to_the_gemm() -> None:
    assert KERNELS["rvp.direct_s8"].why_not(usual_convolution(12), load_target("rv32-rvp")) == ""
    assert "uint8" in KERNELS["rvp.direct_s8"].why_not(with_dtype(usual_convolution(), "uint8"), RVP)


def test_kernels_of_an_extension_need_it() -> None:
    reason = KERNELS["rvp.depthwise_s8"].why_not(usual_depthwise(), load_target("cortex-m4"))
    assert "needs the P extension" in reason


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
