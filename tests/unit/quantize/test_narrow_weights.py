"""Weights of 4 and 2 bits, and weights with a zero point: equal to LiteRT's on every kind of target, or refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.api import run_recipe
from stages.base import StageError
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.models.tflite_reader import read
from tests.support.integer import compare, integer_graph
from tests.support.stages_run import check_firmware

# Data, weights and the axis of the output channels; odd numbers of elements, so that the last byte is half full.
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "conv2d": ((1, 6, 5, 3), (5, 3, 3, 3), 0),
    "depthwise_conv2d": ((1, 6, 5, 5), (1, 3, 3, 5), 3),
    "fully_connected": ((3, 21), (5, 21), 0),
}
NARROW = [("conv2d", "int4"), ("depthwise_conv2d", "int4"), ("fully_connected", "int4"), ("fully_connected", "int2")]


def drawn(op: str, dtype: str) -> np.ndarray:
    """Random weights that include both bounds of the type."""
    end = 1 << int(dtype[3:]) - 1
    values = np.random.default_rng(5).integers(-end, end, SHAPES[op][1]).astype(np.int8)
    values.flat[:2] = -end, end - 1
    return values


def layer(b: ModelBuilder, x: Tensor, op: str, dtype: str, *, channels: bool = True, zero_point: int = 0) -> Tensor:
    values, axis = drawn(op, dtype), SHAPES[op][2]
    units = values.shape[axis]
    bias = np.random.default_rng(6).integers(-500, 500, units).astype(np.int32)
    scale: Any = np.linspace(0.02, 0.05, units, dtype=np.float32) if channels else 0.03
    options = {"weight_scale": scale, "weight_zero_point": zero_point, "weight_dtype": dtype}
    if not x.scale:
        return getattr(b, op)(x, values, np.float32(bias) / 100, **options)  # type: ignore[no-any-return]
    return getattr(b, op)(x, values, bias, out=(0.2, 4), **options)  # type: ignore[no-any-return]


def model(op: str, dtype: str, data: str = "int8", **options: Any) -> bytes:
    b = ModelBuilder()
    quant = {"int8": (0.05, 3), "uint8": (0.05, 120), "float32": (None, 0)}[data]
    b.output(layer(b, b.input("x", SHAPES[op][0], data, *quant), op, dtype, **options))
    return b.build()


@pytest.mark.parametrize(("op", "dtype"), NARROW)
@pytest.mark.parametrize("channels", [True, False])
def test_they_are_those_of_the_file_and_give_what_litert_gives(op: str, dtype: str, channels: bool) -> None:
    data = model(op, dtype, channels=channels)
    stored = next(tensor for tensor in read(data).tensors if tensor.dtype == dtype)
    assert stored.data is not None and len(stored.data) == stored.bytes == -(
        -drawn(op, dtype).size * int(dtype[3:]) // 8
    )
    np.testing.assert_array_equal(stored.values(), drawn(op, dtype))
    comparison = compare(data)
    assert not comparison.wrong and comparison.checked >= 2
    view = comparison.graph.view(comparison.graph.layers[-1])
    assert view.constant("weights").dtype == np.int8
    assert view.bits("weights") == int(dtype[3:])


@pytest.mark.parametrize(("dtype", "zero_points"), [("int8", (-128, -9, 7, 127)), ("int4", (-8, 3, 7))])
@pytest.mark.parametrize("layout", ["NHWC", "planar depthwise"])
def test_a_zero_point_of_a_depthwise_convolution_is_left_out(
    dtype: str, zero_points: tuple[int, ...], layout: str
) -> None:
    for zero_point in zero_points:
        comparison = compare(model("depthwise_conv2d", dtype, channels=False, zero_point=zero_point), layout=layout)
        assert not comparison.wrong and comparison.checked >= 2
        assert comparison.graph.layers[-1].op.weight_zero_point == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("zero_point", [-128, -9, 7, 127])
def test_a_zero_point_of_a_fully_connected_layer_counts(zero_point: int) -> None:
    comparison = compare(model("fully_connected", "int8", channels=False, zero_point=zero_point))
    assert not comparison.wrong and comparison.checked >= 2
    assert comparison.graph.layers[0].op.weight_zero_point == zero_point  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("op", "dtype"), [("conv2d", "int8"), ("fully_connected", "int4"), ("fully_connected", "int2")]
)
def test_where_litert_takes_no_zero_point(op: str, dtype: str) -> None:
    with pytest.raises(StageError, match=rf"operator 0 \({op.upper().replace('CONV2D', 'CONV_2D')}\) "):
        compare(model(op, dtype, channels=False, zero_point=1))


@pytest.mark.parametrize(
    ("op", "dtype", "data", "told"),
    [
        ("conv2d", "int4", "uint8", "operator 0 (CONV_2D) has int4 weights in 'conv2d/weights' with uint8 data"),
        ("conv2d", "int2", "int8",
         "has int2 weights in 'conv2d/weights' with int8 data; LiteRT supports int4 with int8 data"),
        ("depthwise_conv2d", "int4", "float32", "with float32 data; LiteRT supports int4 with int8 data"),
        ("fully_connected", "int4", "uint8",
         "LiteRT supports int4 with int8 data, int2 with int8 data, int4 with float32"),
    ],
)  # fmt: skip
def test_what_litert_has_no_kernel_for_is_refused(op: str, dtype: str, data: str, told: str) -> None:
    with pytest.raises(StageError) as error:
        integer_graph(model(op, dtype, data))
    assert told in str(error.value)


@pytest.mark.parametrize("op", ["conv2d", "fully_connected"])
def test_with_float_data_they_are_multiplied_as_litert_does(tmp_path: Path, op: str) -> None:
    check_firmware(model(op, "int4", "float32"), tmp_path, within=1e-5)


def test_a_constant_that_is_dequantized_is_a_constant_of_floats(tmp_path: Path) -> None:
    b, values = ModelBuilder(), drawn("fully_connected", "int4")
    x = b.input("x", (3, 21), "float32")
    packed = b.constant("w", values, np.linspace(0.1, 0.3, 5, dtype=np.float32), dtype="int4")
    dequantized = b.tensor("whole", values.shape, "float32")
    b.operator("DEQUANTIZE", [packed], [dequantized], "DequantizeOptions", version=5)
    y = b.tensor("y", (3, 5), "float32")
    b.operator("FULLY_CONNECTED", [x, dequantized], [y], "FullyConnectedOptions")
    b.output(y)
    check_firmware(b.build(), tmp_path, within=1e-5)


@pytest.mark.parametrize("target", ["host", "rv64-rvp", "cortex-m4", "cortex-m55"])
def test_every_kind_of_target_computes_them(tmp_path: Path, target: str) -> None:
    b = ModelBuilder()
    y = layer(b, b.input("x", (1, 6, 5, 3), "int8", 0.05, 3), "conv2d", "int4")
    y = layer(b, y, "depthwise_conv2d", "int4")
    values = np.random.default_rng(7).integers(-2, 2, (7, 150)).astype(np.int8)
    b.output(b.fully_connected(y, values, weight_scale=0.03, weight_dtype="int2", out=(0.2, -4)))
    (tmp_path / "net.tflite").write_bytes(b.build())
    recipe = {"schema": 1, "name": "narrow", "target": target, "model": {"file": str(tmp_path / "net.tflite")}}
    recipe["stages"] = {"tensorize": {"count": False}}  # whichever kernels are chosen, the bytes are the same
    report = run_recipe(recipe, store=tmp_path / "store", build=tmp_path / "build").report
    assert report is not None
    assert report["verify"]["mismatches"] == 0 and report["verify"]["layers_checked"] == 3
    assert "3 x int2, int4 constants" in " ".join(report["warnings"])
