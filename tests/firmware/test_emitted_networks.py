"""Whole networks through every stage up to emit, built and run: each layer's bytes against LiteRT's."""

import json
from pathlib import Path

import numpy as np
import pytest

from stages.models.builder import ModelBuilder, Tensor
from stages.models.resolve import resolve
from stages.models.spec import FileModel, OpModel, ZooModel
from stages.reference import Reference
from tests.support.emitted import run_emitted, target_named
from tests.support.stages_run import run_stages, run_tflite

PLANAR = {
    "layout": {
        "rules": [
            {"match": {"op": "conv2d"}, "data": "NHWC"},
            {"match": {"op": "depthwise_conv2d"}, "data": "NCHW"},
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
        ("ds_cnn", "host", True),
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


def heads() -> bytes:
    """What detection networks end with: boxes of two scales joined, scores of flat features, a slice of the result.

    The last boxes begin at a byte that is not aligned, so that they are copied while the others lie in place. Of the
    rows that are outputs of the model only the last is: outputs keep an alignment of 64 bytes.
    """
    rng, b = np.random.default_rng(8), ModelBuilder()
    x = b.input("x", (1, 6, 6, 4), "int8", 0.05, 3)

    def conv(y: Tensor, channels: int, stride: int) -> Tensor:
        shape = (channels, 3, 3, y.shape[3])
        values, bias = (
            rng.integers(-127, 128, shape).astype(np.int8),
            rng.integers(-900, 900, channels).astype(np.int32),
        )
        return b.conv2d(y, values, bias, weight_scale=0.01, stride=(stride, stride), out=(0.1, -5))

    first = conv(conv(conv(x, 64, 1), 8, 1), 4, 1)  # what is large decides the arena, before the heads
    second = conv(first, 8, 2)
    third = conv(second, 4, 2)
    boxes = [b.reshape(y, (1, -1, 4)) for y in (first, second, third)]
    joined = b.concatenation(boxes, 1)
    b.output(joined, b.relu6(b.slice(joined, (0, 36, 0), (1, 18, 4))), *b.split(second, 3, 1))
    return b.build()


@pytest.mark.parametrize("target", ["host", "rv64-rvp", "cortex-m55"])
def test_tensors_that_are_parts_of_others(tmp_path: Path, target: str) -> None:
    data, chosen = heads(), target_named(target)
    (tmp_path / "heads.tflite").write_bytes(data)
    artifacts = run_stages(FileModel(file=str(tmp_path / "heads.tflite")), chosen, tmp_path / "run")
    plan = json.loads((artifacts["tensorize"] / "plan.json").read_text())
    assert sum(layer["kernel"] == "alias" and layer["op"] in ("slice", "split") for layer in plan["layers"]) == 2
    joining = next(layer for layer in plan["layers"] if layer["op"] == "concatenation")
    assert [role for step in joining["steps"] for role in step["roles"]] == ["input:2", "output:0"]
    reference = Reference(data)
    inferences = [some_inputs(reference, seed) for seed in (4, 5)]
    traces = json.loads((artifacts["emit"] / "model.json").read_text())["traces"]
    for inputs, found in zip(inferences, run_emitted(artifacts["emit"], chosen, inferences), strict=True):
        for expected, output in zip(reference.run(inputs), found.outputs, strict=True):
            np.testing.assert_array_equal(output, expected)
        for trace in traces:
            expected = reference.tensor(trace["tflite_index"])
            np.testing.assert_array_equal(found.traces[trace["tensor"]], expected, str(trace))


@pytest.mark.parametrize("target", ["host", "rv64-rvp"])
def test_a_sum_of_a_tensor_and_a_slice_of_it(tmp_path: Path, target: str) -> None:
    """The slice is a part of the tensor, so that the sum must not take the tensor's memory."""
    b = ModelBuilder()
    y = b.relu(b.input("x", (1, 4, 16), "int8", 0.05, 3))
    b.output(b.add(y, b.slice(y, (0, 0, 0), (1, 1, 16)), out=(0.1, -3)))
    reference = Reference(b.build())
    inputs = some_inputs(reference, 6)
    (found,) = run_tflite(b.build(), [inputs], tmp_path, target=target)
    np.testing.assert_array_equal(found.outputs[0], reference.run(inputs)[0])
