"""Inception v3 (arXiv:1512.00567) and v4 (arXiv:1602.07261), as in TensorFlow-Slim.

The input is 299 x 299. Without the side classifier. A module is a list of branches, and a branch a list of steps, each

    (channels, kernel)  or  (channels, kernel, stride)     a convolution; stride 2 goes with VALID, else SAME
    "avg"                                                  3 x 3 average, stride 1, SAME
    "max"                                                  3 x 3 maximum, stride 2, VALID
    [step, step]                                           two convolutions side by side, joined

Joined tensors have the quantization CONCAT_RANGE, also through max pooling, so that joining is copying.
"""

from collections.abc import Sequence
from typing import Any

from stages.ir.models.network import Network, Value
from stages.ir.models.zoo.mobilenet import CLASSES, IMAGE_RANGE

# Normalized layers rarely exceed 6 (see stages.ir.models.network); ReLU removes values below 0.
CONCAT_RANGE = (0.0, 6.0)
SIZE = 299
_IMAGES = 2

Branch = Sequence[Any]


def inception_v3(dtype: str, seed: int, bits: int = 8) -> bytes:
    """Return Inception v3: 5.7 G multiply-accumulates.

    Table 1 of the paper with the module sizes of TensorFlow-Slim.
    """
    net = Network(dtype, seed, bits, images=_IMAGES)
    x = net.input("input", (SIZE, SIZE, 3), IMAGE_RANGE)
    x = net.conv(x, 32, (3, 3), 2, padding="valid", name="Conv2d_1a_3x3")
    x = net.conv(x, 32, (3, 3), padding="valid", name="Conv2d_2a_3x3")
    x = net.conv(x, 64, (3, 3), name="Conv2d_2b_3x3")
    x = net.max_pool(x, (3, 3), 2, name="MaxPool_3a_3x3")
    x = net.conv(x, 80, padding="valid", name="Conv2d_3b_1x1")
    x = net.conv(x, 192, (3, 3), padding="valid", name="Conv2d_4a_3x3")
    x = net.max_pool(x, (3, 3), 2, name="MaxPool_5a_3x3")
    for name, channels in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        double: Branch = [(64, (1, 1)), (96, (3, 3)), (96, (3, 3))]
        x = _module(net, x, name, [[(64, (1, 1))], [(48, (1, 1)), (64, (5, 5))], double, ["avg", (channels, (1, 1))]])
    x = _module(net, x, "Mixed_6a", [[(384, (3, 3), 2)], [(64, (1, 1)), (96, (3, 3)), (96, (3, 3), 2)], ["max"]])
    for name, inner in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        single = [(inner, (1, 1)), (inner, (1, 7)), (192, (7, 1))]
        double = [(inner, (1, 1)), (inner, (7, 1)), (inner, (1, 7)), (inner, (7, 1)), (192, (1, 7))]
        x = _module(net, x, name, [[(192, (1, 1))], single, double, ["avg", (192, (1, 1))]])
    asymmetric = [(192, (1, 1)), (192, (1, 7)), (192, (7, 1)), (192, (3, 3), 2)]
    x = _module(net, x, "Mixed_7a", [[(192, (1, 1)), (320, (3, 3), 2)], asymmetric, ["max"]])
    for name in ("Mixed_7b", "Mixed_7c"):
        fork = [(384, (1, 3)), (384, (3, 1))]
        double = [(448, (1, 1)), (384, (3, 3)), fork]
        x = _module(net, x, name, [[(320, (1, 1))], [(384, (1, 1)), fork], double, ["avg", (192, (1, 1))]])
    x = net.avg_pool(x, (8, 8), name="AvgPool_1a_8x8")
    x = net.conv(x, CLASSES, activation="none", name="Logits/Conv2d_1c_1x1")
    return net.build(net.softmax(net.flatten(x, name="Logits/SpatialSqueeze"), name="Predictions"))


def inception_v4(dtype: str, seed: int, bits: int = 8) -> bytes:
    """Return Inception v4: 12.3 G multiply-accumulates. Figures 3 to 9 of the paper."""
    net = Network(dtype, seed, bits, images=_IMAGES)
    x = net.input("input", (SIZE, SIZE, 3), IMAGE_RANGE)
    x = net.conv(x, 32, (3, 3), 2, padding="valid", name="Conv2d_1a_3x3")
    x = net.conv(x, 32, (3, 3), padding="valid", name="Conv2d_2a_3x3")
    x = net.conv(x, 64, (3, 3), out_range=CONCAT_RANGE, name="Conv2d_2b_3x3")
    x = _module(net, x, "Mixed_3a", [["max"], [(96, (3, 3), 2)]])
    x = _mixed_4a(net, x)
    x = _module(net, x, "Mixed_5a", [[(192, (3, 3), 2)], ["max"]])
    for name in ("Mixed_5b", "Mixed_5c", "Mixed_5d", "Mixed_5e"):
        double: Branch = [(64, (1, 1)), (96, (3, 3)), (96, (3, 3))]
        x = _module(net, x, name, [[(96, (1, 1))], [(64, (1, 1)), (96, (3, 3))], double, ["avg", (96, (1, 1))]])
    x = _module(net, x, "Mixed_6a", [[(384, (3, 3), 2)], [(192, (1, 1)), (224, (3, 3)), (256, (3, 3), 2)], ["max"]])
    for letter in "bcdefgh":
        single = [(192, (1, 1)), (224, (1, 7)), (256, (7, 1))]
        double = [(192, (1, 1)), (192, (7, 1)), (224, (1, 7)), (224, (7, 1)), (256, (1, 7))]
        x = _module(net, x, f"Mixed_6{letter}", [[(384, (1, 1))], single, double, ["avg", (128, (1, 1))]])
    asymmetric = [(256, (1, 1)), (256, (1, 7)), (320, (7, 1)), (320, (3, 3), 2)]
    x = _module(net, x, "Mixed_7a", [[(192, (1, 1)), (192, (3, 3), 2)], asymmetric, ["max"]])
    for letter in "bcd":
        fork = [(256, (1, 3)), (256, (3, 1))]
        double = [(384, (1, 1)), (448, (3, 1)), (512, (1, 3)), fork]
        branches: list[Branch] = [[(256, (1, 1))], [(384, (1, 1)), fork], double, ["avg", (256, (1, 1))]]
        x = _module(net, x, f"Mixed_7{letter}", branches)
    x = net.avg_pool(x, (8, 8), name="AvgPool_1a")
    x = net.fully_connected(net.flatten(x, name="PreLogitsFlatten"), CLASSES, name="Logits")
    return net.build(net.softmax(x, name="Predictions"))


def _mixed_4a(net: Network, x: Value) -> Value:
    """Append the only module whose last convolutions are VALID with stride 1."""
    left = net.conv(x, 64, name="Mixed_4a/Branch_0/0")
    right = net.conv(x, 64, name="Mixed_4a/Branch_1/0")
    right = net.conv(right, 64, (1, 7), name="Mixed_4a/Branch_1/1")
    right = net.conv(right, 64, (7, 1), name="Mixed_4a/Branch_1/2")
    ends = [
        net.conv(branch, 96, (3, 3), padding="valid", out_range=CONCAT_RANGE, name=f"Mixed_4a/Branch_{index}/3")
        for index, branch in enumerate((left, right))
    ]
    return net.concat(ends, name="Mixed_4a/concat")


def _module(net: Network, x: Value, name: str, branches: Sequence[Branch]) -> Value:
    """Append all branches on x, joined over channels."""
    ends = [_branch(net, x, branch, f"{name}/Branch_{index}") for index, branch in enumerate(branches)]
    return net.concat(ends, name=f"{name}/concat")


def _branch(net: Network, x: Value, steps: Branch, name: str) -> Value:
    for index, step in enumerate(steps):
        last = index == len(steps) - 1
        label = f"{name}/{index}"
        if step == "avg":
            x = net.avg_pool(x, (3, 3), 1, padding="same", name=label)
        elif step == "max":
            x = net.max_pool(x, (3, 3), 2, name=label)
        elif isinstance(step, list):
            ends = [
                _convolution(net, x, part, f"{label}{side}", joined=True) for part, side in zip(step, "ab", strict=True)
            ]
            x = net.concat(ends, name=f"{label}/concat")
        else:
            x = _convolution(net, x, step, label, joined=last)
    return x


def _convolution(net: Network, x: Value, step: tuple[Any, ...], name: str, *, joined: bool) -> Value:
    channels, kernel, stride = (*step, 1)[:3]
    padding = "valid" if stride == 2 else "same"
    out_range = CONCAT_RANGE if joined else None
    return net.conv(x, channels, kernel, stride, padding=padding, out_range=out_range, name=name)
