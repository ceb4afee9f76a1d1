"""Whole networks through every stage up to emit, built and run: each layer's bytes against LiteRT's."""

import json
from pathlib import Path

import numpy as np
import pytest

from stages.models.resolve import resolve
from stages.models.spec import OpModel, ZooModel
from stages.reference import Reference
from tests.support.emitted import run_emitted, target_named
from tests.support.stages_run import run_stages

PLANAR = {
    "layout": {
        "rules": [
            {"match": {"op": "conv2d"}, "data": "NHWC", "kernel": "OHWI"},
            {"match": {"op": "depthwise_conv2d"}, "data": "NCHW", "kernel": "OIHW"},
            {"match": {"op": "avg_pool2d"}, "data": "NCHW"},
        ]
    }
}
NETWORKS = {
    "ds_cnn": ZooModel(zoo="ds_cnn"),
    "ds_cnn-uint8": ZooModel(zoo="ds_cnn", dtype="uint8"),
    "resnet_8": ZooModel(zoo="resnet_8"),
    "autoencoder": ZooModel(zoo="autoencoder"),
    "conv2d": OpModel(op="conv2d", shape=(9, 7, 5), out_channels=6, kernel=(3, 2), stride=(2, 1)),
}


def some_inputs(reference: Reference, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    made = []
    for tensor in reference.inputs:
        limits = np.iinfo(tensor.dtype)
        made.append(rng.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype))
    return made


@pytest.mark.parametrize(
    ("network", "target", "planar"),
    [
        ("ds_cnn", "host", False),
        ("ds_cnn", "host", True),
        ("ds_cnn", "rv32-scalar", True),
        ("ds_cnn-uint8", "host", False),
        ("resnet_8", "host", True),
        ("autoencoder", "rv64-scalar", False),
        ("conv2d", "rv64-scalar", False),
    ],
)
def test_every_layer_equals_litert(tmp_path: Path, network: str, target: str, planar: bool) -> None:
    model, chosen = NETWORKS[network], target_named(target)
    artifacts = run_stages(model, chosen, tmp_path, configs=PLANAR if planar else {})
    described = json.loads((artifacts["emit"] / "model.json").read_text())
    assert described["arena_bytes"] == described["arena_lower_bound"]
    reference = Reference(resolve(model))
    inferences = [some_inputs(reference, seed) for seed in (1, 2)]
    found = run_emitted(artifacts["emit"], chosen, inferences)
    for inputs, inference in zip(inferences, found, strict=True):
        for expected, output in zip(reference.run(inputs), inference.outputs, strict=True):
            np.testing.assert_array_equal(output, expected)
        assert described["traces"]
        for trace in described["traces"]:
            expected = reference.tensor(trace["tflite_index"])
            np.testing.assert_array_equal(inference.traces[trace["tensor"]], expected, str(trace))


def test_float32_networks_are_close_to_litert(tmp_path: Path) -> None:
    model, chosen = ZooModel(zoo="ds_cnn", dtype="float32"), target_named("rv64-scalar")
    artifacts = run_stages(model, chosen, tmp_path)
    reference = Reference(resolve(model))
    x = np.random.default_rng(3).uniform(-1, 1, reference.inputs[0].shape).astype(np.float32)
    (found,) = run_emitted(artifacts["emit"], chosen, [[x]], flags=("-O2",))
    np.testing.assert_allclose(found.outputs[0], reference.run([x])[0], rtol=1e-4)
