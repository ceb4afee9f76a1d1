"""One-operator layers that every table has: what the models of costs learn the kernels' behaviour from.

Shapes vary one thing at a time around what networks have: size of the image, channels in and out, window, stride; and
what kernels find awkward: few channels, channels that are no multiple of a register, a single row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from stages.graph import Graph, Layout, Tensor
from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.layout.apply import lay_out
from stages.layout.rules import LayoutConfig
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.models.tflite_reader import read
from stages.quantize.lower import lower_module
from stages.tensor_layout import NHWC
from stages.tensorize.transforms import transform

BLOCKS = Layout("NCHW16c")

# height, width, channels in, channels out, window, stride
_CONVOLUTIONS = (
    (8, 8, 16, 16, (1, 1), 1),
    (8, 8, 64, 64, (1, 1), 1),
    (8, 8, 16, 128, (1, 1), 1),
    (8, 8, 128, 16, (1, 1), 1),
    (3, 3, 256, 256, (1, 1), 1),
    (16, 16, 8, 24, (1, 1), 1),
    (8, 8, 8, 8, (1, 1), 1),
    (24, 24, 8, 16, (1, 1), 1),
    (5, 5, 8, 48, (1, 1), 1),
    (12, 12, 8, 40, (1, 1), 1),
    (7, 7, 8, 96, (1, 1), 1),
    (28, 28, 8, 8, (1, 1), 1),
    (10, 3, 8, 64, (1, 1), 1),
    (48, 48, 8, 16, (1, 1), 1),
    (7, 7, 36, 50, (1, 1), 1),
    (9, 9, 32, 32, (1, 1), 2),
    (16, 16, 3, 8, (3, 3), 2),
    (16, 16, 3, 32, (3, 3), 1),
    (8, 8, 16, 16, (3, 3), 1),
    (8, 8, 32, 32, (3, 3), 2),
    (20, 12, 64, 24, (3, 3), 1),
    (9, 33, 8, 32, (3, 3), 1),
    (6, 6, 40, 24, (5, 5), 1),
    (9, 9, 24, 24, (1, 7), 1),
    (9, 9, 24, 24, (7, 1), 1),
    (1, 1, 64, 10, (1, 1), 1),
    (12, 12, 64, 1, (1, 1), 1),
    (16, 16, 16, 2, (1, 1), 1),
    (8, 8, 32, 3, (3, 3), 1),
    (28, 28, 1, 16, (3, 3), 1),
    (1, 150, 1, 24, (1, 5), 1),
    (24, 24, 3, 24, (1, 1), 1),
    (20, 20, 1, 12, (3, 3), 2),
    (14, 14, 2, 16, (2, 2), 1),
    (40, 2, 4, 24, (3, 1), 1),
    (16, 16, 6, 32, (1, 1), 1),
    (24, 24, 3, 8, (1, 3), 1),
    (30, 30, 1, 8, (2, 2), 2),
)
# height, width, channels, window, stride
_DEPTHWISE = (
    (8, 8, 8, (3, 3), 1),
    (8, 8, 64, (3, 3), 1),
    (16, 16, 32, (3, 3), 1),
    (5, 5, 128, (3, 3), 1),
    (7, 13, 12, (3, 3), 1),
    (16, 16, 16, (3, 3), 2),
    (9, 9, 64, (3, 3), 2),
    (28, 28, 8, (3, 3), 2),
    (8, 8, 32, (5, 5), 1),
    (10, 10, 16, (5, 5), 2),
    (14, 14, 24, (5, 5), 1),
    (7, 7, 96, (5, 5), 1),
    (9, 12, 20, (3, 5), 1),
    (18, 18, 48, (5, 5), 1),
    (6, 6, 160, (5, 5), 1),
    (11, 11, 16, (4, 4), 1),
)
_WHOLE = ((7, 7, 64), (5, 5, 96), (3, 3, 128), (25, 5, 32))  # whose window is the image
# height, width, groups, channels in and out of each, window, stride
_GROUPED = (
    (8, 8, 2, 8, 8, (3, 3), 1),
    (16, 16, 2, 16, 4, (1, 1), 1),
    (5, 5, 3, 12, 16, (3, 3), 1),
    (12, 12, 4, 4, 4, (1, 1), 1),
    (9, 9, 4, 16, 8, (3, 3), 2),
    (7, 7, 4, 8, 16, (5, 5), 1),
    (14, 14, 8, 4, 8, (3, 3), 1),
    (6, 6, 8, 12, 4, (1, 1), 1),
    (20, 3, 8, 16, 16, (3, 1), 1),
)
# height, width, groups, channels in and out of each: the window is the image
_WHOLE_GROUPS = (
    (12, 12, 8, 4, 4),
    (7, 7, 4, 12, 16),
    (5, 5, 2, 16, 10),
    (1, 1, 4, 8, 4),
    (3, 9, 3, 5, 3),
    (6, 6, 1, 12, 10),
)
# height, width, window, stride, channels out: of one channel, where an ordinary convolution is the other form
_MULTIPLIED = (
    (24, 24, (3, 3), 1, 2),
    (24, 24, (3, 3), 1, 8),
    (16, 16, (5, 5), 2, 4),
    (25, 20, (10, 8), 2, 8),
    (49, 40, (10, 8), 2, 8),
)
# batch, depth, units; few units too: kernels differ in what they compute for those that are not there
_PRODUCTS = (
    (1, 16, 8),
    (1, 33, 1),
    (1, 256, 2),
    (1, 1000, 3),
    (1, 4000, 4),
    (1, 128, 8),
    (1, 64, 10),
    (1, 64, 12),
    (1, 512, 20),
    (1, 128, 128),
    (1, 640, 128),
    (1, 1024, 100),
    (1, 50, 7),
    (4, 64, 32),
    (16, 128, 64),
)
# height, width, channels in, channels out, window, stride, groups
_FEW: tuple[tuple[Any, ...], ...] = (
    *(
        (1, 1, 1, 3, (1, 1), 1, 1),
        (3, 3, 1, 8, (1, 1), 1, 1),
        (12, 7, 1, 3, (1, 1), 1, 1),
        (24, 24, 1, 3, (1, 1), 1, 1),
    ),
    *(
        (5, 5, 3, 3, (1, 1), 1, 1),
        (33, 33, 1, 1, (1, 1), 1, 1),
        (24, 24, 8, 3, (1, 1), 1, 1),
        (2, 2, 48, 160, (1, 1), 1, 1),
    ),
    *(
        (9, 9, 3, 1, (1, 1), 1, 1),
        (16, 16, 2, 2, (1, 1), 1, 1),
        (1, 1, 172, 40, (1, 1), 1, 1),
        (7, 7, 12, 20, (1, 1), 1, 1),
    ),
    *(
        (2, 2, 1, 3, (3, 3), 1, 1),
        (9, 9, 1, 1, (3, 3), 1, 1),
        (16, 16, 1, 8, (3, 3), 1, 1),
        (12, 12, 3, 3, (3, 3), 1, 1),
    ),
    *(
        (24, 24, 2, 1, (3, 3), 2, 1),
        (5, 5, 4, 12, (3, 3), 1, 1),
        (24, 1, 16, 24, (5, 1), 1, 1),
        (1, 24, 8, 8, (1, 5), 2, 1),
    ),
    *((3, 3, 16, 64, (1, 1), 2, 4), (12, 12, 32, 32, (3, 3), 1, 2), (7, 7, 24, 48, (3, 3), 1, 8)),
)
# image, window, stride of pools whose pixels are whole words of 4 bytes and not of 8
_ODD_POOLS = (
    ((16, 16, 12), (1, 3), 1),
    ((14, 14, 44), (3, 3), 1),
    ((9, 9, 4), (5, 5), 1),
    ((12, 12, 20), (2, 2), 2),
    ((7, 7, 36), (7, 7), 1),
    ((1, 19, 4), (1, 19), 1),
)
# height, width, channels, multiplier, window, stride, dilation, padding
_ODD: tuple[tuple[Any, ...], ...] = (
    *((24, 30, 1, 1, (1, 2), 1, 2, "same"), (16, 16, 1, 1, (3, 3), 2, 1, "valid"), (5, 5, 1, 1, (3, 3), 1, 1, "valid")),
    *((9, 9, 1, 1, (1, 1), 1, 1, "valid"), (5, 23, 1, 1, (3, 3), 1, 2, "same"), (24, 24, 1, 3, (1, 1), 1, 1, "same")),
    *((16, 16, 1, 1, (3, 3), 1, 1, "same"), (12, 12, 1, 1, (5, 5), 2, 1, "same"), (8, 8, 4, 2, (3, 3), 1, 1, "same")),
    *((12, 12, 8, 3, (3, 3), 2, 1, "same"), (5, 5, 16, 8, (3, 3), 1, 1, "same"), (12, 12, 8, 1, (3, 3), 1, 2, "same")),
    *(
        (7, 7, 40, 1, (3, 3), 1, 2, "same"),
        (20, 20, 3, 1, (3, 3), 1, 2, "valid"),
        (12, 12, 8, 1, (3, 1), 2, 1, "valid"),
    ),
    *((2, 31, 2, 1, (2, 1), 2, 1, "valid"), (24, 1, 32, 1, (9, 1), 1, 1, "same"), (1, 30, 12, 1, (1, 7), 1, 1, "same")),
    *(
        (9, 33, 16, 1, (5, 1), 1, 1, "same"),
        (14, 14, 24, 1, (1, 3), 1, 1, "same"),
        (12, 12, 40, 1, (12, 12), 1, 1, "same"),
        (10, 10, 24, 1, (10, 10), 1, 1, "same"),
    ),
    *((7, 7, 16, 1, (7, 7), 1, 1, "valid"), (5, 5, 64, 1, (5, 5), 1, 1, "valid"), (3, 3, 36, 1, (3, 3), 1, 1, "same")),
    *((1, 1, 40, 1, (1, 1), 1, 1, "same"), (1, 1, 64, 1, (3, 3), 1, 1, "same"), (9, 9, 24, 1, (2, 2), 1, 1, "same")),
    *(
        (16, 16, 12, 1, (2, 2), 2, 1, "valid"),
        (14, 14, 16, 1, (7, 7), 1, 1, "same"),
        (3, 40, 20, 1, (3, 3), 1, 1, "same"),
    ),
    *((14, 14, 64, 1, (1, 1), 1, 1, "same"), (7, 7, 36, 1, (1, 1), 1, 1, "same"), (9, 9, 20, 1, (1, 1), 2, 1, "same")),
    *((12, 12, 24, 1, (2, 2), 2, 1, "same"), (49, 1, 32, 1, (3, 1), 1, 1, "same"), (9, 9, 5, 1, (2, 2), 1, 1, "same")),
)
# Of 16-bit activations: convolutions and depthwise ones as above, products as above.
_WIDE = ((16, 16, 16, 16, (1, 1), 1), (8, 8, 64, 64, (1, 1), 1), (16, 16, 3, 8, (3, 3), 2), (8, 8, 16, 24, (3, 3), 1))
_WIDE_DEPTHWISE = (
    *((8, 8, 32, (3, 3), 1), (16, 16, 16, (3, 3), 2), (7, 7, 24, (5, 5), 1), (12, 12, 8, (3, 3), 1)),
    *((5, 5, 64, (3, 3), 1), (9, 9, 40, (3, 3), 2), (10, 10, 12, (5, 5), 2), (6, 6, 20, (3, 1), 1)),
)
_WIDE_PRODUCTS = ((1, 64, 12), (1, 256, 64), (1, 50, 7), (4, 128, 32))
_IMAGES = ((8, 8, 16), (5, 5, 7), (16, 16, 32), (4, 4, 256), (12, 12, 3), (2, 3, 64), (14, 14, 40), (1, 1, 1000))
# height, width, channels: what meets a row of channels and a column of pixels
_BROADCAST = ((9, 9, 4), (6, 7, 10), (12, 11, 16), (5, 5, 55), (10, 10, 20), (3, 2, 3), (1, 2, 8))
_JOINED = ((10, 10, 24), (20, 20, 16), (6, 6, 96), (24, 24, 8), (7, 7, 20))  # along channels: short runs
_FEW_MEANS = ((9, 9, 5), (20, 20, 2), (6, 6, 10), (14, 14, 3))
_MORE_MEANS = ((7, 7, 48), (10, 10, 24), (3, 3, 128))
# steps, features, units
_LSTMS = (
    (1, 8, 8),
    (4, 16, 16),
    (10, 40, 16),
    (4, 16, 64),
    (7, 24, 40),
    (1, 64, 64),
    (16, 7, 12),
    (3, 1, 20),
    (5, 128, 8),
)
# Products of matrices: shape, shape of the other
_MATRICES = (
    ((4, 16, 16), (4, 16, 16)),
    ((64, 64), (64, 64)),
    ((2, 49, 49), (2, 49, 32)),
    ((1, 64), (64, 100)),
    ((4, 100), (100, 12)),
    ((7, 33), (33, 13)),
    ((32, 8), (8, 32)),
    ((2, 40), (40, 3)),
)
# Images that are enlarged: height, width, channels, factor
_RESIZED = (
    (8, 8, 16, 2),
    (12, 12, 3, 2),
    (5, 7, 8, 4),
    (16, 16, 21, 2),
    (10, 10, 32, 2),
    (6, 9, 64, 2),
    (20, 20, 8, 2),
    (20, 9, 3, 2),
)
# Depth, units, rank, memory
_REMEMBERED = (
    *((40, 96, 1, 10), (16, 64, 2, 8), (80, 32, 2, 9), (392, 8, 1, 10)),
    *((24, 128, 1, 8), (128, 16, 1, 12), (64, 48, 2, 16), (200, 24, 4, 6)),
)
_UNARY = ("logistic", "hard_swish", "relu", "softmax", "quantize", "dequantize")


def grid() -> Iterator[Graph]:
    """The layers, each as a graph; depthwise convolutions and pooling in both layouts; transforms into blocks and back.

    An engine beside the core may work in blocks, which no kernel of the core states.
    """
    for spec, layouts in _specs():
        data = build(spec)
        for layout in layouts:
            info = read(data, spec.op)
            module, _ = lay_out(build_module(data, info), LayoutConfig(default=layout))
            yield lower_module(module, describe(info, operator_options(data))).graph
    for shape, (before, after) in product(_IMAGES, ((NHWC, BLOCKS), (BLOCKS, NHWC))):
        x = Tensor(name="x", shape=(1, *shape), dtype="int8", layout=before)
        layer, y = transform(x, after, "y")
        if y.alias_of is None:
            yield Graph({"x": x, "y": y}, [layer], ["x"], ["y"])


def awkward() -> Iterator[Graph]:
    """Layers on which kernels waste most: they are few in networks, and models of other layers say little of them."""
    for spec in _awkward_specs():
        data = build(spec)
        info = read(data, spec.op)
        module, _ = lay_out(build_module(data, info), LayoutConfig())
        yield lower_module(module, describe(info, operator_options(data))).graph


def _awkward_specs() -> Iterator[OpModel]:
    def op(name: str, shape: tuple[int, ...], **options: Any) -> OpModel:
        return OpModel.model_validate({"op": name, "shape": shape, **options})

    for height, width, channels, outputs, kernel, stride, groups in _FEW:
        options: dict[str, Any] = {"kernel": kernel, "stride": (stride, stride), "groups": groups}
        yield op("conv2d", (height, width, channels), out_channels=outputs, **options)
    for height, width, channels, multiplier, kernel, stride, dilation, padding in _ODD:
        options = {"kernel": kernel, "stride": (stride, stride), "dilation": (dilation, dilation), "padding": padding}
        yield op("depthwise_conv2d", (height, width, channels), depth_multiplier=multiplier, **options)
    for kind, (shape, kernel, stride) in product(("avg_pool2d", "max_pool2d"), _ODD_POOLS):
        yield op(kind, shape, kernel=kernel, stride=(stride, stride))
    for shape, permutation in product(((24, 10, 40), (5, 7, 3)), ((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1))):
        yield op("transpose", shape, permutation=permutation)
    for shape, axis in product(((2, 2, 4), (7, 7, 45), (1, 9, 2)), (1, 3)):
        yield op("concatenation", shape, axis=axis)
    for shape in ((12, 12, 1), (16, 9, 1), (9, 9, 2), (3, 3, 96), (1, 1, 300)):
        yield op("mean", shape, axes=(1, 2))


def _specs() -> Iterator[tuple[OpModel, tuple[Any, ...]]]:
    both, rows = ("NHWC", "NCHW"), ("NHWC",)

    def op(name: str, shape: tuple[int, ...], **options: Any) -> OpModel:
        return OpModel.model_validate({"op": name, "shape": shape, **options})

    for height, width, before, after, kernel, stride in _CONVOLUTIONS:
        options: dict[str, Any] = {"kernel": kernel, "stride": (stride, stride)}
        yield op("conv2d", (height, width, before), out_channels=after, **options), rows
    for height, width, groups, depth, after, kernel, stride in _GROUPED:
        options = {"kernel": kernel, "stride": (stride, stride), "groups": groups, "out_channels": groups * after}
        yield op("conv2d", (height, width, groups * depth), **options), rows
    for height, width, groups, depth, after in _WHOLE_GROUPS:
        options = {"kernel": (height, width), "padding": "valid", "groups": groups, "out_channels": groups * after}
        yield op("conv2d", (height, width, groups * depth), **options), both
    for height, width, channels, kernel, stride in _DEPTHWISE:
        yield op("depthwise_conv2d", (height, width, channels), kernel=kernel, stride=(stride, stride)), both
    for height, width, channels in _WHOLE:
        options = {"kernel": (height, width), "padding": "valid"}
        yield op("depthwise_conv2d", (height, width, channels), **options), rows
    for height, width, kernel, stride, after in _MULTIPLIED:
        options = {"kernel": kernel, "stride": (stride, stride), "depth_multiplier": after}
        yield op("depthwise_conv2d", (height, width, 1), **options), rows
    for batch, depth, units in _PRODUCTS:
        yield op("fully_connected", (depth,), batch=batch, out_channels=units), rows
    for shape in (*_IMAGES, (6, 6, 32), (10, 10, 8), (4, 9, 48)):
        yield op("prelu", shape), rows
    for height, width, channels in _BROADCAST:
        yield op("prelu", (height, width, channels)), rows
        for binary in ("add", "mul"):
            yield op(binary, (height, width, channels), other_shape=(1, 1, channels)), rows
            yield op(binary, (height, width, channels), other_shape=(height, width, 1)), rows
    for shape in _IMAGES:
        window = (min(shape[0], 7), min(shape[1], 7))
        for pool in ("avg_pool2d", "max_pool2d"):
            yield op(pool, shape, kernel=(2, 2), stride=(2, 2)), both
            yield op(pool, shape, kernel=(3, 3), stride=(1, 1)), both
            yield op(pool, shape, kernel=window, stride=(1, 1), padding="valid"), both
        for binary in ("add", "sub", "mul"):
            yield op(binary, shape), rows
        yield op("mean", shape, axes=(1, 2)), both
        yield op("pad", shape, pads=((0, 0), (1, 1), (1, 1), (0, 0))), rows
        yield op("concatenation", shape), rows
        yield op("concatenation", shape, axis=1, parts=3), rows
        for unary in _UNARY:
            yield op(unary, shape), rows
    for shape in _JOINED:
        yield op("concatenation", shape), rows
    for shape in (*_FEW_MEANS, *_MORE_MEANS):
        yield op("mean", shape, axes=(1, 2)), rows
    for steps, features, units in _LSTMS:
        yield op("lstm", (steps, features), out_channels=units), rows
    for first, second in _MATRICES:
        yield op("batch_matmul", first, other_shape=second), rows
    for depth, units, rank, memory in _REMEMBERED:
        yield op("svdf", (depth,), out_channels=units, rank=rank, memory=memory), rows
    for height, width, channels, factor in _RESIZED:
        for corners, centers in ((False, False), (False, True), (True, False)):
            options = {"size": (factor * height, factor * width)}
            options |= {"align_corners": corners, "half_pixel_centers": centers}
            yield op("resize_bilinear", (height, width, channels), **options), rows
    sixteen: dict[str, Any] = {"dtype": "int16"}
    for height, width, before, after, kernel, stride in _WIDE:
        options = {"kernel": kernel, "stride": (stride, stride), **sixteen}
        yield op("conv2d", (height, width, before), out_channels=after, **options), rows
    for height, width, channels, kernel, stride in _WIDE_DEPTHWISE:
        options = {"kernel": kernel, "stride": (stride, stride), **sixteen}
        yield op("depthwise_conv2d", (height, width, channels), **options), rows
    for batch, depth, units in _WIDE_PRODUCTS:
        yield op("fully_connected", (depth,), batch=batch, out_channels=units, **sixteen), rows
    for spec in (op("conv2d", (8, 8, 24), out_channels=24, dtype="uint8"), op("add", (8, 8, 24), dtype="uint8")):
        yield spec, rows
    yield op("depthwise_conv2d", (8, 8, 24), kernel=(3, 3), dtype="uint8"), both
    yield op("fully_connected", (96,), out_channels=24, dtype="uint8"), rows
