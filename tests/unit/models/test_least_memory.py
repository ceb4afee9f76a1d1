"""Bounds of memory from below: never above what is really needed, and near it for usual networks."""

from typing import Any

import numpy as np
import pytest

from stages.ir.models import zoo
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.least_memory import LeastMemory, least_memory
from stages.ir.models.spec import FileModel
from stages.ir.models.tflite_reader import read
from tests.support.emitted import target_named
from tests.support.stages_run import run_stages

RNG = np.random.default_rng(3)


def weights(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.integers(-127, 128, shape, dtype=np.int8)


def bounds(b: ModelBuilder, *outputs: Any) -> LeastMemory:
    b.output(*outputs)
    return least_memory(read(b.build()), by_rows=False)


def conv(b: ModelBuilder, x: Any, w: Any, name: str = "conv", scale: float = 0.01, **options: Any) -> Any:
    scales = [scale * (1 + 0.1 * c) for c in range(len(w))]
    return b.conv2d(x, w, weight_scale=scales, out=(0.1, 0), name=name, **options)


def test_weights_and_the_largest_layer_are_named() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4), "int8", 0.1, 0)
    y = conv(b, x, weights(16, 3, 3, 4), "wide")
    z = b.fully_connected(b.avg_pool2d(y, (8, 8)), weights(10, 16), weight_scale=0.01, out=(0.1, 0), name="dense")
    least = bounds(b, z)
    assert (least.weights, least.weighted) == (16 * 36 + 160, 2)
    assert least.heaviest == "operator 0 (CONV_2D) 'wide' 576"
    assert least.activations == 256 + 1024
    assert least.largest == (
        "operator 0 (CONV_2D) 'wide': input int8[1, 8, 8, 4] 256 and output int8[1, 8, 8, 16] 1,024"
    )


def test_an_output_of_the_same_size_may_take_the_inputs_place() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4), "int8", 0.1, 0)
    assert bounds(b, conv(b, x, weights(4, 1, 1, 4))).activations == 256


def test_equal_weights_count_once() -> None:
    b = ModelBuilder()
    x, w = b.input("x", (1, 8, 8, 4), "int8", 0.1, 0), weights(4, 3, 3, 4)
    least = bounds(b, conv(b, conv(b, x, w, "a"), w, "b"))
    assert (least.weights, least.weighted) == (144, 2)


def _with(w: Any, index: Any, value: Any) -> Any:
    w[index] = value
    return w


@pytest.mark.parametrize(
    ("w", "scale"),
    [
        (weights(4, 3, 3, 4), 1e-9),  # all outputs are constant
        (_with(weights(4, 3, 3, 4), 1, 0), 0.01),  # one output is
        (_with(weights(4, 3, 3, 4), (..., 2), 0), 0.01),  # nothing reads an input
    ],
)
def test_nothing_is_known_if_channels_may_be_removed(w: Any, scale: float) -> None:
    """Layers before and after may then shrink as well: no board is refused for bytes that firmware does not need."""
    b = ModelBuilder()
    x = conv(b, b.input("x", (1, 8, 8, 4), "int8", 0.1, 0), weights(4, 3, 3, 4), "a")
    least = bounds(b, conv(b, x, w, "b", scale))
    assert (least.weights, least.activations, least.tensor) == (0, 0, 0)


def test_taps_that_never_touch_the_image_do_not_count() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 1, 2, 4), "int8", 0.1, 0)
    assert bounds(b, conv(b, x, weights(5, 3, 5, 4))).weights == 5 * 1 * 3 * 4


@pytest.mark.parametrize(("name", "dtype"), [("ds_cnn", "int8"), ("resnet_8", "uint8"), ("autoencoder", "float32")])
def test_networks_need_more_but_not_by_much(name: str, dtype: str, tmp_path: Any) -> None:
    import json

    data = zoo.build(name, dtype)
    (tmp_path / "net.tflite").write_bytes(data)
    whole = {"tensorize": {"streaming": False}}
    file = FileModel(file=str(tmp_path / "net.tflite"))
    made = run_stages(file, target_named("rv64-rvp"), tmp_path / "run", configs=whole)
    model, least = json.loads((made["emit"] / "model.json").read_text()), least_memory(read(data), by_rows=False)
    assert 0.7 * model["weights_bytes"] < least.weights <= model["weights_bytes"]
    assert 0.4 * model["arena_bytes"] < least.activations <= model["arena_bytes"]
    assert least.tensor == max(row["bytes"] for row in model["arena"] if row["kind"] == "tensor")
