"""Trains the digits network and writes all that `recipes/digits_*.yaml` needs. From the project's root:

    python -m recipes.digits.train

Data: the 1797 8 x 8 grey images (values 0 to 16) that come with scikit-learn, a copy of the test set of the UCI
"Optical Recognition of Handwritten Digits" data. 360 of them, drawn with a fixed seed, are held out. Written beside
this file:

    digits_int8.tflite       per-channel int8 weights, ranges from the training images
    digits_float32.tflite    the same network before quantization
    calibration_float32.npy  [200, 8, 8, 1] float32, of the training images
    heldout_int8.npy         [360, 8, 8, 1] int8, as the int8 network takes them
    heldout_float32.npy      [360, 8, 8, 1] float32, 0 to 1
    labels.npy               [360] int32

Takes some ten seconds. On one machine the files come out the same each time; BLAS of another machine may sum in
another order, so a retrained network there may differ in its last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from recipes.digits import network
from recipes.digits.network import Array, Parameters
from stages.ir.models.builder import ModelBuilder, Tensor

FOLDER = Path(__file__).parent
HELD_OUT = 360
CALIBRATION = 200
SEED = 1797
EPOCHS = 40
BATCH = 32
RATE = 2e-3
DECAY = 1e-3


def load() -> tuple[Array, npt.NDArray[np.int64], Array, npt.NDArray[np.int64]]:
    """Training images and labels, held-out images and labels; images [N, 8, 8, 1] float32 from 0 to 1."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.images[..., None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    order = np.random.RandomState(SEED).permutation(len(images))
    held, train = order[:HELD_OUT], order[HELD_OUT:]
    return images[train], labels[train], images[held], labels[held]


def quantize(images: Array) -> npt.NDArray[np.int8]:
    """Images as the int8 network takes them: scale 1/255, zero point -128."""
    return (np.rint(images * 255) - 128).astype(np.int8)


def train(images: Array, labels: npt.NDArray[np.int64]) -> Parameters:
    """Adam with a cosine schedule; each batch is moved by up to one pixel."""
    random = np.random.RandomState(SEED)
    parameters = network.initial(random)
    adam = network.Adam(parameters, DECAY)
    for epoch in range(EPOCHS):
        order = random.permutation(len(images))
        losses = []
        for start in range(0, len(images), BATCH):
            batch = order[start : start + BATCH]
            moved = np.roll(images[batch], random.randint(-1, 2, size=2), axis=(1, 2))
            loss, gradient = network.gradients(parameters, moved, labels[batch])
            adam.step(parameters, gradient, RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS)))
            losses.append(loss)
        print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.4f}")
    return parameters


def float_model(parameters: Parameters) -> bytes:
    """The trained network as a float32 TFLite file."""
    b = ModelBuilder()
    x = b.input("image", (1, 8, 8, 1), "float32")
    layer = {name: (parameters[f"{name}/weights"], parameters[f"{name}/bias"]) for name in network.SHAPES}
    x = b.conv2d(x, *layer["conv"], activation="relu", name="conv")
    x = b.depthwise_conv2d(x, *layer["depthwise"], activation="relu", name="depthwise")
    x = b.conv2d(x, *layer["pointwise"], activation="relu", name="pointwise")
    x = b.max_pool2d(x, (2, 2), name="pool")
    x = b.conv2d(x, *layer["conv_2"], activation="relu", name="conv_2")
    x = b.max_pool2d(x, (2, 2), name="pool_2")
    x = b.reshape(x, (1, -1), name="flatten")
    x = b.fully_connected(x, *layer["dense"], name="dense")
    b.output(b.softmax(x))
    return b.build()


def int8_model(parameters: Parameters, images: Array) -> bytes:
    """The network quantized after training: per-channel weights (one scale for dense), ranges from `images`."""
    values = network.forward(parameters, images)
    b = ModelBuilder()
    x = b.input("image", (1, 8, 8, 1), "int8", 1 / 255, -128)
    x = _layer(b.conv2d, x, parameters, "conv", values["conv"], 0)
    x = _layer(b.depthwise_conv2d, x, parameters, "depthwise", values["depthwise"], 3)
    x = _layer(b.conv2d, x, parameters, "pointwise", values["pointwise"], 0)
    x = b.max_pool2d(x, (2, 2), name="pool")
    x = _layer(b.conv2d, x, parameters, "conv_2", values["conv_2"], 0)
    x = b.max_pool2d(x, (2, 2), name="pool_2")
    x = b.reshape(x, (1, -1), name="flatten")
    x = _layer(b.fully_connected, x, parameters, "dense", values["logits"], None, "none")
    b.output(b.softmax(x))
    return b.build()


def _layer(
    emit: Callable[..., Tensor],
    x: Tensor,
    parameters: Parameters,
    name: str,
    result: Array,
    weight_axis: int | None,
    activation: str = "relu",
) -> Tensor:
    """One weighted layer: symmetric weights, a bias in units of input_scale * weight_scale, the observed range."""
    weights = parameters[f"{name}/weights"].astype(np.float64)
    others = tuple(axis for axis in range(weights.ndim) if axis != weight_axis) if weight_axis is not None else None
    scale = np.abs(weights).max(axis=others, keepdims=True) / 127
    stored = np.rint(weights / scale).astype(np.int8)
    flat = scale.reshape(-1)
    bias = np.rint(parameters[f"{name}/bias"] / (x.scale[0] * flat)).astype(np.int32)
    low, high = min(0.0, float(result.min())), float(result.max())
    out = ((high - low) / 255, round(-128 - low / ((high - low) / 255)))
    return emit(x, stored, bias, weight_scale=flat, activation=activation, out=out, name=name)


def main() -> None:
    """Trains and writes the six files."""
    images, labels, held_images, held_labels = load()
    parameters = train(images, labels)
    for name, part, truth in (("training", images, labels), ("held out", held_images, held_labels)):
        guessed = network.forward(parameters, part)["logits"].argmax(axis=1)
        print(f"{name}: {np.mean(guessed == truth):.4f} of {len(truth)}")
    (FOLDER / "digits_float32.tflite").write_bytes(float_model(parameters))
    (FOLDER / "digits_int8.tflite").write_bytes(int8_model(parameters, images))
    np.save(FOLDER / "calibration_float32.npy", images[:CALIBRATION])
    np.save(FOLDER / "heldout_int8.npy", quantize(held_images))
    np.save(FOLDER / "heldout_float32.npy", held_images)
    np.save(FOLDER / "labels.npy", held_labels.astype(np.int32))


if __name__ == "__main__":
    main()
