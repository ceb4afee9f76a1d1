"""MLPerf Tiny's other networks (arXiv:2106.07597, version 1.4), as in its files."""

from stages.ir.models.network import Network, Value

# Ranges of the benchmark's inputs, as its reference files quantize them.
_MFCC_RANGE = (-123.4, 25.7)
_LOG_MEL_RANGE = (-84.9, 14.9)
_SWW_RANGE = (0.0, 0.944)

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


def ds_cnn_1d(dtype: str, seed: int, bits: int = 8) -> bytes:
    """Return the streaming wake word: 30 frames of 40 energies -> wake word, silence, other.

    Four depthwise-separable blocks over time, without padding: 30 -> 28 -> 24 -> 15 -> 1 frames.
    """
    net = Network(dtype, seed, bits, images=_IMAGES)
    x = net.input("input", (30, 1, 40), _SWW_RANGE)
    for index, (taps, channels) in enumerate(((3, 128), (5, 128), (10, 128), (15, 32))):
        x = net.depthwise(x, (taps, 1), padding="valid", activation="none", name=f"depthwise_conv2d_{index}")
        x = net.conv(x, channels, padding="valid", name=f"conv2d_{index}")
    x = net.fully_connected(net.flatten(x, name="flatten"), 3, name="dense")
    return net.build(net.softmax(x, name="softmax"))


def resnet_8(dtype: str, seed: int, bits: int = 8, *, width: int = 16) -> bytes:
    """Return image classification: 32 x 32 x 3 -> 10 classes.

    Three residual stacks of `width`, 2 `width` and 4 `width` channels.
    """
    net = Network(dtype, seed, bits, images=_IMAGES)
    x = net.input("input", (32, 32, 3), (0.0, 255.0))
    x = net.conv(x, width, (3, 3), name="conv2d")
    for index, channels in enumerate((width, 2 * width, 4 * width)):
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
