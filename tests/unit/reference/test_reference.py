"""The oracle computes what LiteRT's reference kernels are documented to, and bad models or inputs are messages."""

import numpy as np
import pytest

from stages.base import StageError
from stages.models.builder import ModelBuilder
from stages.models.tflite_reader import read
from stages.reference import Reference, RunError, check_model, random_inputs, run
from tests.support.shared_models import shared_models


def two_layers() -> bytes:
    b = ModelBuilder()
    x = b.input("x", (1, 2, 2, 2), "int8", 0.5, 0)
    weights = np.array([[[[1, 2]]], [[[-3, 4]]]], dtype=np.int8)
    y = b.conv2d(x, weights, np.array([10, 0], np.int32), weight_scale=[0.5, 0.5], out=(1.0, 5), name="conv")
    b.output(b.relu(y, out=(0.5, -128), name="relu"))
    return b.build()


def test_runs_and_keeps_every_intermediate_tensor() -> None:
    oracle = Reference(two_layers())
    x = np.array([4, 8, -4, 2, 0, 0, 100, 100], dtype=np.int8).reshape(1, 2, 2, 2)
    (output,) = oracle.run([x])
    # By hand: real conv = (w . x + bias) * 0.25, stored with scale 1 and zero point 5.
    sums = np.stack([x[..., 0] + 2.0 * x[..., 1] + 10, -3.0 * x[..., 0] + 4.0 * x[..., 1]], axis=-1) * 0.25
    conv, relu = (op.outputs[0] for op in oracle.info.operators)
    assert np.abs(oracle.tensor(conv) - (sums + 5)).max() <= 0.5
    assert np.array_equal(output, np.clip(2 * np.maximum(oracle.tensor(conv) - 5.0, 0) - 128, -128, 127))
    assert list(oracle.computed()) == [conv, relu]


def test_convolution_rounds_twice_and_fully_connected_once() -> None:
    # TFLite's two roundings: the doubling high multiply rounds the low 31 bits away, then the shift rounds again, so
    # 0.49999999 may end at 1. Here the accumulator 1 meets the multiplier 0.49999997.
    b = ModelBuilder()
    scale = float(np.float32(0.49999997))
    x = b.input("x", (1, 1, 1, 1), "int8", 1.0, 0)
    conv = b.conv2d(x, np.ones((1, 1, 1, 1), np.int8), weight_scale=[scale / 64], out=(1.0, 0))
    dense = b.fully_connected(x, np.ones((1, 1), np.int8), weight_scale=scale / 64, out=(1.0, 0))
    b.output(conv, dense)
    data = b.build()
    conv_result, dense_result = (array.item() for array in run(data, [np.full((1, 1, 1, 1), 64, np.int8)]))
    assert (conv_result, dense_result) == (1, 0)


def test_inputs_are_checked() -> None:
    oracle = Reference(two_layers(), name="two.tflite")
    with pytest.raises(RunError, match=r"input x of two\.tflite is int8\[1, 2, 2, 2\], got float32"):
        oracle.run([np.zeros((1, 2, 2, 2), np.float32)])
    with pytest.raises(RunError, match=r"got int8\[1, 2, 2, 3\]"):
        oracle.run([np.zeros((1, 2, 2, 3), np.int8)])
    with pytest.raises(RunError, match="1 inputs"):
        oracle.run([])
    with pytest.raises(RunError, match=r"inputs of two\.tflite are x"):
        oracle.run({"y": np.zeros((1, 2, 2, 2), np.int8)})
    assert oracle.run({"x": np.zeros((2, 2, 2), np.int8)})[0].shape == (1, 2, 2, 2)


def test_without_preserve_all_intermediates_are_refused_not_wrong() -> None:
    oracle = Reference(two_layers(), preserve_all=False)
    oracle.run(random_inputs(oracle.info))
    with pytest.raises(RunError, match="not preserved"):
        oracle.tensor(oracle.info.operators[0].outputs[0])
    assert oracle.tensor(oracle.info.operators[0].inputs[1]).shape == (2, 1, 1, 2)


def test_operator_that_litert_does_not_have() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4), "int8", 0.5)
    y = b.tensor("y", (1, 4), "int8", 0.5)
    b.operator("CONV_2D", [x], [y])  # a convolution without weights
    b.output(y)
    with pytest.raises(RunError, match="LiteRT cannot load odd"):
        Reference(b.build(), name="odd")
    with pytest.raises(RunError, match="LiteRT cannot run odd"):
        check_model(b.build(), "odd")


def test_a_file_that_kills_litert_is_a_message() -> None:
    # Structure and types are sound, but the kernel aborts while it builds its table of exponentials.
    b = ModelBuilder()
    x = b.input("x", (1, 4), "int8", 0.5)
    y = b.softmax(x, beta=-1.0)
    b.output(y)
    with pytest.raises(RunError) as caught:
        check_model(b.build(), "deadly")
    assert "deadly makes LiteRT crash (signal" in str(caught.value) and len(str(caught.value).splitlines()) <= 5


def test_check_model_returns_what_a_good_file_holds() -> None:
    assert check_model(two_layers()).operators[0].op == "CONV_2D"
    with pytest.raises(StageError, match="corrupt or truncated"):
        check_model(two_layers()[:-200])


def test_random_inputs_repeat_and_cover_the_range() -> None:
    b = ModelBuilder()
    x8, xf = b.input("x8", (1, 4000), "int8", 0.5), b.input("xf", (1, 4000), "float32")
    b.output(b.relu(x8), b.relu(xf))
    info = read(b.build())
    first, second, other = (random_inputs(info, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert set(np.unique(first[0])) == set(range(-128, 128))
    assert -1 <= first[1].min() < -0.99 and 0.99 < first[1].max() < 1 and abs(first[1].mean()) < 0.05


def test_real_networks_know_their_images() -> None:
    folder = shared_models("inputs/resnet/output_labels.csv")[0].parent
    (model,) = shared_models("mlperf_tiny/pretrainedResnet_quant.tflite")
    oracle = Reference(model.read_bytes(), preserve_all=False)
    rows = (folder / "output_labels.csv").read_text().split()[1:11]
    truth = [int(row.split(",")[1]) for row in rows]
    pixels = [np.fromfile(folder / "input" / f"{i}.bin", dtype=np.uint8) for i in range(10)]
    # The files hold pixels from 0 to 255; the network's input has scale 1 and zero point -128.
    images = [(image.astype(np.int16) - 128).astype(np.int8).reshape(1, 32, 32, 3) for image in pixels]
    assert [oracle.run([image])[0].argmax() for image in images] == truth
