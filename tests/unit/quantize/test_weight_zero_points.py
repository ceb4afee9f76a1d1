"""int8 weights with a zero point: used, ignored or refused, as LiteRT's reference does."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.api import run_recipe
from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from tests.support.integer import compare

ZERO_POINTS = [-128, -9, 7, 127]


def model(op: str, zero_point: int) -> bytes:
    rng, b = np.random.default_rng(3), ModelBuilder()
    shapes = {
        "fully_connected": ((3, 21), (6, 21)),
        "conv2d": ((1, 6, 5, 3), (4, 3, 3, 3)),
        "depthwise_conv2d": ((1, 6, 5, 5), (1, 3, 3, 5)),
    }
    data, weights = shapes[op]
    x = b.input("x", data, "int8", 0.05, 3)
    values = rng.integers(-128, 128, weights).astype(np.int8)
    bias = rng.integers(-500, 500, weights[-1] if op == "depthwise_conv2d" else weights[0]).astype(np.int32)
    b.output(getattr(b, op)(x, values, bias, weight_scale=0.01, weight_zero_point=zero_point, out=(0.5, -4)))
    return b.build()


@pytest.mark.parametrize("zero_point", ZERO_POINTS)
def test_of_a_fully_connected_layer_it_counts(zero_point: int) -> None:
    comparison = compare(model("fully_connected", zero_point))
    assert not comparison.wrong and comparison.checked >= 2
    assert comparison.graph.layers[0].op.weight_zero_point == zero_point  # type: ignore[union-attr]


@pytest.mark.parametrize("zero_point", ZERO_POINTS)
@pytest.mark.parametrize("layout", ["NHWC", "planar depthwise"])
def test_of_a_depthwise_convolution_it_is_left_out(zero_point: int, layout: str) -> None:
    comparison = compare(model("depthwise_conv2d", zero_point), layout=layout)
    assert not comparison.wrong and comparison.checked >= 2
    assert comparison.graph.layers[-1].op.weight_zero_point == 0  # type: ignore[union-attr]


def test_of_a_convolution_litert_takes_none() -> None:
    with pytest.raises(StageError, match="CONV_2D"):
        compare(model("conv2d", 7))


@pytest.mark.parametrize("target", ["rv32-scalar", "host"])
def test_generic_kernels_compute_such_a_layer(tmp_path: Path, target: str) -> None:
    (tmp_path / "net.tflite").write_bytes(model("fully_connected", 7))
    recipe = {"schema": 1, "name": "shifted", "target": target, "model": {"file": str(tmp_path / "net.tflite")}}
    report = run_recipe(recipe, store=tmp_path / "store", build=tmp_path / "build").report
    assert report is not None
    assert report["layers"][0]["kernel"] == "generic.fully_connected"
    assert report["verify"]["mismatches"] == 0
