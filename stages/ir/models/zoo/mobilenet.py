"""MobileNet v1 (arXiv:1704.04861) and v2 (arXiv:1801.04381), as in TensorFlow-Slim."""

from stages.ir.models.network import Network, Value

CLASSES = 1001  # ImageNet's thousand and "background"

# Pixels scaled to [-1, 1): scale 1/128.
IMAGE_RANGE = (-1.0, 127 / 128)

# Table 1 of the v1 paper: (stride of the depthwise convolution, channels after the pointwise one).
_V1_BLOCKS = [(1, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512), *[(1, 512)] * 5, (2, 1024), (1, 1024)]

# Table 2 of the v2 paper: (expansion, channels, repetitions, stride of the first).
_V2_BLOCKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def mobilenet_v1(width: float, size: int, dtype: str, seed: int, bits: int = 8) -> bytes:
    """Return MobileNet v1 for ImageNet; the input is size x size x 3.

    `width` multiplies all channels (at least 8 remain).
    """
    net = Network(dtype, seed, bits)
    x = _v1_features(net, net.input("input", (size, size, 3), IMAGE_RANGE), width, "relu6")
    return net.build(net.softmax(_classifier(net, x), name="predictions"))


def vww(dtype: str, seed: int, bits: int = 8) -> bytes:
    """Return MLPerf Tiny's visual wake words: MobileNet v1 0.25 on 96 x 96 x 3.

    It has ReLU, and a dense layer of two classes.
    """
    net = Network(dtype, seed, bits, images=16)
    x = _v1_features(net, net.input("input", (96, 96, 3), (0.0, 1.0)), 0.25, "relu")
    x = net.global_avg_pool(x, name="average_pooling2d")
    x = net.fully_connected(net.flatten(x, name="flatten"), 2, name="dense")
    return net.build(net.softmax(x, name="softmax"))


def _v1_features(net: Network, x: Value, width: float, activation: str) -> Value:
    x = net.conv(x, max(8, int(32 * width)), (3, 3), 2, activation=activation, name="Conv2d_0")
    for index, (stride, channels) in enumerate(_V1_BLOCKS, start=1):
        x = net.depthwise(x, (3, 3), stride, activation=activation, name=f"Conv2d_{index}_depthwise")
        x = net.conv(x, max(8, int(channels * width)), activation=activation, name=f"Conv2d_{index}_pointwise")
    return x


def mobilenet_v2(width: float, size: int, dtype: str, seed: int, bits: int = 8) -> bytes:
    """Return MobileNet v2 for ImageNet. The last convolution has at least 1280 channels."""
    net = Network(dtype, seed, bits)
    x = net.input("input", (size, size, 3), IMAGE_RANGE)
    x = net.conv(x, _divisible(32 * width), (3, 3), 2, activation="relu6", name="Conv")
    index = 0
    for expansion, channels, repetitions, stride in _V2_BLOCKS:
        for repetition in range(repetitions):
            name = f"expanded_conv_{index}" if index else "expanded_conv"
            x = _inverted_residual(net, x, expansion, _divisible(channels * width), 1 if repetition else stride, name)
            index += 1
    x = net.conv(x, _divisible(1280 * max(1.0, width)), activation="relu6", name="Conv_1")
    # The hosted file ends with the logits.
    return net.build(_classifier(net, x))


def _inverted_residual(net: Network, x: Value, expansion: int, channels: int, stride: int, name: str) -> Value:
    inner, width = x, x.tensor.shape[3]
    if expansion > 1:
        inner = net.conv(inner, expansion * width, activation="relu6", name=f"{name}/expand")
    inner = net.depthwise(inner, (3, 3), stride, activation="relu6", name=f"{name}/depthwise")
    inner = net.conv(inner, channels, activation="none", name=f"{name}/project")
    if stride == 1 and channels == width:
        return net.add(inner, x, name=f"{name}/add")
    return inner


def _classifier(net: Network, x: Value) -> Value:
    """Append global average and 1x1 convolution: [1, H, W, C] -> [1, classes]."""
    x = net.global_avg_pool(x, stride=1, name="Logits/AvgPool")
    x = net.conv(x, CLASSES, activation="none", name="Logits/Conv2d_1c_1x1")
    return net.flatten(x, name="Logits/SpatialSqueeze")


def _divisible(channels: float, divisor: int = 8) -> int:
    """Return the nearest multiple of 8, at most 10 % below `channels`.

    TensorFlow-Slim's `_make_divisible`.
    """
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded
