"""Rewritten functions give the same results: small networks, before and after, run by TVM."""

from collections.abc import Callable

import numpy as np
import pytest

from stages.base import StageError
from stages.import_model.build import build_module
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.models.tflite_reader import read
from stages.ir.reference.interpreter import random_inputs
from stages.layout.apply import lay_out
from stages.layout.rules import LayoutConfig
from tests.support.relax_run import run_relax, weights

SHAPE = (2, 5, 4, 6)
OUT = (0.4, 3)


class Sandwich:
    """x -> 3x3 convolution `before` -> one operator -> 1x1 convolution `after`; the rules make `after` read NCHW."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.b, self.rng = dtype, ModelBuilder(), np.random.default_rng(11)
        self.quantized = dtype != "float32"
        self.out = OUT if self.quantized else None

    def weights(self, *shape: int) -> np.ndarray:
        return weights(self.rng, shape, "int8").astype(self.dtype)

    def constant(self, *shape: int) -> Tensor:
        return self.b.constant("c", self.weights(*shape), 0.03 if self.quantized else None, 0)

    def scales(self, channels: int) -> list[float] | None:
        return [0.01 * (i + 1) for i in range(channels)] if self.quantized else None

    def build(self, make: Callable[["Sandwich", Tensor], Tensor | list[Tensor]]) -> bytes:
        x = self.b.input("x", SHAPE, self.dtype, 0.01 if self.quantized else None, 0)
        y = self.b.conv2d(x, self.weights(6, 3, 3, 6), weight_scale=self.scales(6), out=self.out, name="before")
        for part in [result] if isinstance(result := make(self, y), Tensor) else result:
            kernel = self.weights(3, 1, 1, part.shape[3])
            z = self.b.conv2d(part, kernel, weight_scale=self.scales(3), out=self.out, name="after")
            self.b.output(z)
        return self.b.build()


def laid_out(data: bytes, *rules: dict):
    """Run the network before and after; return the layout report."""
    info = read(data)
    module = build_module(data, info)
    changed, report = lay_out(module, LayoutConfig.model_validate({"rules": list(rules)}))
    inputs = [np.round(4 * array) if array.dtype == np.float32 else array for array in random_inputs(info, seed=5)]
    before, after = run_relax(module, inputs), run_relax(changed, inputs)
    for have, want in zip(after, before, strict=True):
        assert len(np.unique(want)) > min(8, want.size // 2)
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6 if want.dtype == np.float32 else 0)
    return report


FOLLOWERS: dict[str, Callable[[Sandwich, Tensor], Tensor | list[Tensor]]] = {
    "add": lambda s, x: s.b.add(x, x, out=s.out),
    "add of a channel vector": lambda s, x: s.b.add(x, s.constant(6), activation="relu", out=s.out),
    "sub of an image": lambda s, x: s.b.sub(s.constant(1, 5, 4, 1), x, out=s.out),
    "mul by a scalar": lambda s, x: s.b.mul(x, s.constant(1), out=s.out),
    "relu": lambda s, x: s.b.relu(x),
    "hard_swish": lambda s, x: s.b.hard_swish(x),
    "leaky_relu": lambda s, x: s.b.leaky_relu(x, 0.125),
    "logistic": lambda s, x: s.b.logistic(x),
    "pad": lambda s, x: s.b.pad(x, [(0, 0), (1, 0), (2, 3), (0, 4)]),
    "concatenation of channels": lambda s, x: s.b.concatenation([x, s.b.relu(x)], axis=3),
    "concatenation of rows": lambda s, x: s.b.concatenation([x, x], axis=1),
    "slice": lambda s, x: s.b.slice(x, (0, 1, 0, 2), (2, 3, 4, 3)),
    "strided_slice": lambda s, x: s.b.strided_slice(x, (0, 0, 1, 0), (2, 5, 4, 6), (1, 2, 1, 3)),
    "split": lambda s, x: s.b.split(x, 3, axis=3),
    "mean of rows": lambda s, x: s.b.mean(x, (1,), keep_dims=True, out=s.out),
    "resize": lambda s, x: s.b.resize_nearest_neighbor(x, (7, 8)),
}


@pytest.mark.parametrize("name", FOLLOWERS)
def test_follower_between_planar_neighbours_needs_no_transform(name: str) -> None:
    data = Sandwich("int8").build(FOLLOWERS[name])
    report = laid_out(data, {"match": {"name": "after*"}, "data": "NCHW"})
    assert report["transforms"] == []
    assert all(row["data"] == "NCHW" for row in report["operators"][1:])
    assert {row["why"] for row in report["operators"][1:]} == {"inherited", "rule 1"}


POOLS = {
    "avg_pool2d": lambda s, x: s.b.avg_pool2d(x, (3, 2), (2, 1), padding="same"),
    "max_pool2d": lambda s, x: s.b.max_pool2d(x, (2, 3), (1, 2), padding="same", activation="relu6"),
}


@pytest.mark.parametrize("data", ["NHWC", "NCHW"])
@pytest.mark.parametrize("after", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("pool", "dtype"), [("avg_pool2d", "int8"), ("max_pool2d", "int8"), ("avg_pool2d", "float32")])
def test_pool_reads_one_layout_and_writes_the_other(pool: str, after: str, data: str, dtype: str) -> None:
    model = Sandwich(dtype).build(POOLS[pool])
    rules = ({"match": {"op": pool}, "data": data}, {"match": {"name": "after"}, "data": after})
    report = laid_out(model, *rules)
    assert report["transforms"] == []
    assert (report["operators"][1]["data"], report["operators"][1]["out"]) == (data, after)


@pytest.mark.parametrize("data", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_convolution_in_every_layout(data: str, dtype: str) -> None:
    s = Sandwich(dtype)
    bias = s.rng.integers(-99, 99, 4).astype("int32" if s.quantized else "float32")
    model = s.build(
        lambda s, x: s.b.conv2d(
            x, s.weights(4, 3, 2, 3), bias, weight_scale=s.scales(4), stride=(2, 1), dilation=(1, 2),
            activation="relu", out=s.out,
        )
    )  # fmt: skip
    report = laid_out(model, {"match": {"groups": 2}, "data": data})
    row = report["operators"][1]
    assert (row["data"], row["why"]) == (data, "rule 1")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("data", ["NHWC", "NCHW"])
@pytest.mark.parametrize("channels", [1, 6])
def test_depthwise_in_every_layout(channels: int, data: str, dtype: str) -> None:
    """Per channel (int8), per tensor (uint8), multiplier 2; TVM treats a single input channel apart."""
    b, rng = ModelBuilder(), np.random.default_rng(1)
    x = b.input("x", (1, 5, 4, channels), dtype, 0.01 if dtype != "float32" else None, 128 if dtype == "uint8" else 0)
    scale = {"int8": [0.01 * (i + 1) for i in range(2 * channels)], "uint8": 0.02, "float32": None}[dtype]
    y = b.depthwise_conv2d(
        x, weights(rng, (1, 3, 3, 2 * channels), dtype),
        rng.integers(-99, 99, 2 * channels).astype("float32" if dtype == "float32" else "int32"),
        weight_scale=scale, weight_zero_point=120 if dtype == "uint8" else 0, stride=(1, 2),
        out=OUT if dtype != "float32" else None,
    )  # fmt: skip
    b.output(y)
    report = laid_out(b.build(), {"match": {"op": "depthwise_conv2d"}, "data": data})
    assert report["operators"][0]["data"] == data
    # One channel has the same bytes in both layouts: nothing to move then.
    moved = [transform for transform in report["transforms"] if transform["moves"]]
    assert len(moved) == (data == "NCHW" and channels > 1)


@pytest.mark.parametrize("many", [False, True])
def test_dynamic_range_convolution_in_nchw(many: bool) -> None:
    b, rng = ModelBuilder(), np.random.default_rng(1)
    x = b.input("x", SHAPE, "float32")
    scale = [0.01, 0.02, 0.03, 0.04] if many else 0.01
    b.output(b.conv2d(x, weights(rng, (4, 3, 3, 6), "int8"), np.ones(4, np.float32), weight_scale=scale))
    report = laid_out(b.build(), {"match": {"op": "conv2d"}, "data": "NCHW"})
    assert report["operators"][0]["data"] == "NCHW"


def test_operator_that_cannot_be_renumbered_reads_nhwc() -> None:
    """A mean over rows without kept axes leaves (N, W, C), whose order would change in NCHW."""
    data = Sandwich("float32").build(lambda s, x: s.b.reshape(s.b.mean(x, (1,)), (2, 1, 4, 6)))
    report = laid_out(data, {"match": {"op": "conv2d"}, "data": "NCHW"})
    assert [(row["op"], row["data"]) for row in report["operators"]][1] == ("MEAN", "NHWC")
    with pytest.raises(StageError, match="can only read NHWC"):
        laid_out(data, {"match": {"op": "mean"}, "data": "NCHW"})


def test_mean_over_the_image_reads_either() -> None:
    data = Sandwich("float32").build(lambda s, x: s.b.reshape(s.b.mean(x, (1, 2)), (2, 1, 1, 6)))
    report = laid_out(data, {"match": {"op": "mean"}, "data": "NCHW"})
    assert report["operators"][1]["data"] == "NCHW"
    assert report["operators"][1]["out"] == ""
    assert report["transforms"] == []
