"""The other networks of MLPerf Tiny (arXiv:2106.07597), as in its reference files."""

from __future__ import annotations

from stages.ir.models.network import Network, Value

# Ranges of the benchmark's inputs, as its reference files quantize them.
_MFCC_RANGE = (-123.4, 25.7)
_LOG_MEL_RANGE = (-84.9, 14.9)

_IMAGES = 32  # small layers: more images give more values to observe


def ds_cnn(dtype: str, seed: int, bits: int = 8) -> bytes:
    """Return keyword spotting: 49 x 10 MFCC -> 12 words.

    A 10x4 convolution with stride 2, and four depthwise-separable blocks.
    """
    net = Network(dtype, seed, bits, images=_IMAGES)
    x = net.input("input", (49, 10, 1), _MFCC_RANGE)
    x = net.conv(x, 64, (10, 4), 2, name="conv2d")
    for index in range(1, 5):
        x = net.depthwise(x, name=f"depthwise_conv2d_{index}")
        x = net.conv(x, 64, name=f"conv2d_{index}")
    x = net.global_avg_pool(x, name="average_pooling2d")
    x = net.fully_connected(net.flatten(x, name="flatten"), 12, name="dense")
    return net.build(net.softmax(x, name="softmax"))


def resnet_8(dtype: str, seed: int, bits: int = 8) -> bytes:
    """Return image classification: 32 x 32 x 3 -> 10 classes.

    Three residual stacks of 16, 32 and 64 channels.
    """
    net = Network(dtype, seed, bits, images=_IMAGES)
    x = net.input("input", (32, 32, 3), (0.0, 255.0))
    x = net.conv(x, 16, (3, 3), name="conv2d")
    for index, channels in enumerate((16, 32, 64)):
        x = _residual(net, x, channels, f"stack_{index}")
    x = net.global_avg_pool(x, name="average_pooling2d")
    x = net.fully_connected(net.flatten(x, name="flatten"), 10, name="dense")
    return net.build(net.softmax(x, name="softmax"))


def _residual(net: Network, x: Value, channels: int, name: str) -> Value:
    """Append two 3x3 convolutions and a shortcut.

    The shortcut is the identity, or a 1x1 convolution with stride 2 if the channels change.
    """
    stride = 1 if x.tensor.shape[3] == channels else 2
    inner = net.conv(x, channels, (3, 3), stride, name=f"{name}/conv2d")
    inner = net.conv(inner, channels, (3, 3), activation="none", name=f"{name}/conv2d_1")
    if stride > 1:
        x = net.conv(x, channels, (1, 1), stride, activation="none", name=f"{name}/shortcut")
    return net.add(x, inner, activation="relu", name=f"{name}/add")


def autoencoder(dtype: str, seed: int, bits: int = 8) -> bytes:
    """Return anomaly detection: 640 log-mel energies -> 128 x 4 -> 8 -> 128 x 4 -> 640, dense."""
    net = Network(dtype, seed, bits, images=_IMAGES)
    x = net.input("input", (640,), _LOG_MEL_RANGE)
    for index, units in enumerate((128, 128, 128, 128, 8, 128, 128, 128, 128)):
        x = net.fully_connected(x, units, activation="relu", name=f"dense_{index}")
    return net.build(net.fully_connected(x, 640, name="dense_9"))
