"""Chains of convolutions, with names and sizes that a test gives."""

from math import prod

import numpy as np

from stages.ir.models.builder import ModelBuilder

QUANT = (0.05, 0)


def convolutions(
    shape: tuple[int, ...], *layers: tuple[str, tuple[int, ...]], strides: tuple[int, ...] = (), classes: int = 0
) -> bytes:
    """A TFLite file: an int8 image of `shape` through layers of these names and shapes of weights, drawn up to 9.

    strides  of each layer; 1 without
    classes  units of a fully connected layer at the end
    """
    rng, b = np.random.default_rng(1), ModelBuilder()
    x = b.input("x", shape, "int8", *QUANT)
    for (name, size), stride in zip(layers, strides or (1,) * len(layers), strict=True):
        weights, bias = rng.integers(-9, 10, size).astype(np.int8), np.zeros(size[0], np.int32)
        x = b.conv2d(x, weights, bias, weight_scale=0.01, stride=(stride, stride), out=QUANT, name=name)
    if classes:
        weights = rng.integers(-9, 10, (classes, prod(x.shape))).astype(np.int8)
        x = b.fully_connected(x, weights, np.zeros(classes, np.int32), weight_scale=0.01, out=QUANT, name="classes")
    b.output(x)
    return b.build()
