"""Ranges, equalization and bias correction, each on a network and data made to need it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.import_model.normalize.graph import one_graph
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_reader import read
from stages.ir.reference import Reference
from stages.ptq.equalization import equalized, pairs
from stages.ptq.weights import Weights
from tests.support.float_networks import images, run_ptq
from tests.support.optional import needs

QUANTIZER = needs("ai_edge_quantizer", "ptq")


def snr(folder: Path, model: bytes, **config: Any) -> float:
    """Of the outputs, in dB, on clean images."""
    np.save(folder / "test.npy", images(8, 9))
    options = {"data": {"files": ["images.npy"]}, "evaluate": {"files": ["test.npy"]}, **config}
    return float(json.loads((run_ptq(folder, model, options) / "ptq.json").read_text())["snr"])


def bounded() -> bytes:
    """A layer whose outputs stay below 6 whatever its inputs are: only these have a range to be chosen."""
    random = np.random.default_rng(3)
    b = ModelBuilder()
    x = b.input("x", (1, 64, 64, 3), "float32")
    weights = random.standard_normal((4, 3, 3, 3)).astype(np.float32)
    b.output(b.conv2d(x, weights, np.ones(4, np.float32), stride=(4, 4), activation="relu6", name="conv"))
    return b.build()


def large_images(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).uniform(0, 1, (count, 64, 64, 3)).astype(np.float32)


@QUANTIZER
@pytest.mark.parametrize(
    ("config", "spoilt", "gain"),
    [
        ({"ranges": "percentile", "percentile": 97.0}, (17,), 15),  # an image of 100
        ({"ranges": "percentile"}, (17, 5, 9), 15),  # three numbers in 1.2 million, as below
        ({"ranges": "mse"}, (17, 5, 9), 5),
    ],
)
def test_ranges_help_where_few_values_are_large(
    tmp_path: Path, config: dict[str, Any], spoilt: tuple[int, ...], gain: int
) -> None:
    calibration_images = large_images(100, 1)
    calibration_images[spoilt] *= 50
    np.save(tmp_path / "images.npy", calibration_images)
    np.save(tmp_path / "test.npy", large_images(4, 2))
    results = {}
    for name, more in (("minmax", {}), ("chosen", config)):
        options = {"data": {"files": ["images.npy"]}, "evaluate": {"files": ["test.npy"]}, **more}
        results[name] = json.loads((run_ptq(tmp_path, bounded(), options) / "ptq.json").read_text())["snr"]
    assert results["chosen"] > results["minmax"] + gain


def unbalanced() -> bytes:
    """Weights of channels a thousand times apart, made up for in the next layer."""
    random = np.random.default_rng(4)
    factors = np.logspace(-1.5, 1.5, 8).astype(np.float32)
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 3), "float32")
    first = random.standard_normal((8, 3, 3, 3)).astype(np.float32) * factors[:, None, None, None]
    x = b.conv2d(x, first, factors, activation="relu", name="first")
    x = b.max_pool2d(x, (2, 2), name="pool")
    x = b.depthwise_conv2d(x, random.standard_normal((1, 3, 3, 8)).astype(np.float32) / factors, None, name="middle")
    b.output(b.conv2d(x, random.standard_normal((4, 1, 1, 8)).astype(np.float32), np.ones(4, np.float32), name="last"))
    return b.build()


@QUANTIZER
def test_equalization_helps_channels_that_share_a_scale(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", images(20))
    plain = snr(tmp_path, unbalanced(), per_channel=False)
    assert snr(tmp_path, unbalanced(), per_channel=False, equalize=True) > plain + 10


def test_equalization_changes_no_result() -> None:
    model = unbalanced()
    changed, count = equalized(model, read(model))
    image = images(1)
    expected, got = (Reference(network, preserve_all=False).run([image])[0][0] for network in (model, changed))
    assert count == 2 and changed != model
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_no_pair_where_scaling_would_change_the_result() -> None:
    """ReLU6 clamps; what two layers read, or is an output, is read with its own scale; shared weights are one."""
    weights = np.ones((8, 1, 1, 8), np.float32)
    kinds: dict[str, int] = {}
    for kind in ("plain", "relu6", "two readers", "output", "one constant"):
        b = ModelBuilder()
        x = b.input("x", (1, 4, 4, 8), "float32")
        y = b.conv2d(x, weights, activation="relu6" if kind == "relu6" else "relu", name="first")
        z = b.conv2d(y, weights, name="second")
        if kind == "two readers":
            z = b.add(z, y)
        b.output(*([z, y] if kind == "output" else [z]))
        model = b.build()
        info = read(model)
        if kind == "one constant":
            graph = one_graph(model, "net", 0)
            graph.operators[1].inputs = graph.operators[0].inputs * [0, 1, 1] + [graph.operators[1].inputs[0], 0, 0]
            model = graph.pack()
            info = read(model)
        kinds[kind] = len(list(pairs(info, Weights(model, info))))
    assert kinds == {"plain": 1, "relu6": 0, "two readers": 0, "output": 0, "one constant": 0}


def shifting() -> bytes:
    """Weights that 4 bits round to one side, on inputs that are all above 0: the errors add up."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 3), "float32")
    weights = np.full((6, 3, 3, 3), 1 / 7 * 0.45, np.float32)
    weights[:, 0, 0, 0] = 1.0
    x = b.conv2d(x, weights, np.zeros(6, np.float32), name="conv")
    x = b.depthwise_conv2d(
        x, np.full((1, 3, 3, 12), 0.3, np.float32), np.zeros(12, np.float32), stride=(2, 2), name="dw"
    )
    dense = np.full((5, 192), 1 / 7 * 0.45, np.float32)
    dense[:, 0] = 1.0
    b.output(b.fully_connected(x, dense, np.zeros(5, np.float32), name="dense"))
    return b.build()


@QUANTIZER
def test_bias_correction_takes_away_what_rounding_adds(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", images(20))
    plain = snr(tmp_path, shifting(), weights="int4")
    assert snr(tmp_path, shifting(), weights="int4", bias_correction=True) > plain + 10


@pytest.mark.parametrize(
    ("stride", "dilation", "padding"), [((1, 1), (1, 1), "same"), ((2, 1), (1, 2), "same"), ((1, 2), (2, 1), "valid")]
)
@pytest.mark.parametrize("kind", ["conv2d", "depthwise_conv2d"])
def test_the_shift_is_what_the_error_adds_on_average(kind: str, stride: Any, dilation: Any, padding: str) -> None:
    """Against LiteRT: the mean output of a layer whose weights are the error."""
    from stages.ptq.bias_correction import shift

    random = np.random.default_rng(6)
    shape = (4, 3, 3, 2) if kind == "conv2d" else (1, 3, 3, 4)
    error = random.standard_normal(shape).astype(np.float32)
    b = ModelBuilder()
    x = b.input("x", (1, 9, 8, 2), "float32")
    b.output(getattr(b, kind)(x, error, stride=stride, dilation=dilation, padding=padding))
    model = b.build()
    oracle, samples = Reference(model), random.standard_normal((5, 1, 9, 8, 2)).astype(np.float32)
    expected = np.mean([oracle.run([sample])[0].mean(axis=(0, 1, 2)) for sample in samples], axis=0)
    computed_shift = shift(
        error.astype(np.float64), oracle.info.operators[0], oracle.info, samples.astype(np.float64).mean(axis=0)
    )
    np.testing.assert_allclose(computed_shift, expected, atol=1e-5)
