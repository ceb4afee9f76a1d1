"""TFLite models of operators with drawn shapes, windows and quantization: what property tests build, run and compare.

Each function here adds one operator with an input of its own to a ModelBuilder. Hypothesis draws everything that may
decide which code runs; the values of weights come from a seed, since they need no shrinking.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from stages.ir.models.builder import ModelBuilder, Tensor

Draw = Callable[[st.SearchStrategy[Any]], Any]

_PARTS = st.integers(1, 12)  # quotients of such scales often have small denominators, and so make ties
SCALES = st.one_of(
    st.floats(0.004, 0.2).map(np.float32).map(float),
    st.tuples(_PARTS, _PARTS).map(lambda parts: float(np.float32(0.05 * parts[0] / parts[1]))),
)
ACTIVATIONS = st.sampled_from(["none", "none", "relu", "relu6", "relu_n1_to_1"])


def zero_points(dtype: str) -> st.SearchStrategy[int]:
    bounds = np.iinfo(dtype)
    middle = (int(bounds.min) + int(bounds.max) + 1) // 2
    return st.integers(middle - 90, middle + 90) | st.sampled_from([int(bounds.min), int(bounds.max)])


def values(draw: Draw, shape: tuple[int, ...], dtype: str, low: int | None = None) -> np.ndarray:
    bounds = np.iinfo(dtype)
    rng = np.random.default_rng(draw(st.integers(0, 1 << 20)))
    return rng.integers(bounds.min if low is None else low, bounds.max + 1, shape).astype(dtype)


def input_tensor(draw: Draw, b: ModelBuilder, name: str, dtype: str, shape: tuple[int, ...]) -> Tensor:
    return b.input(f"{name}/x", shape, dtype, draw(SCALES), draw(zero_points(dtype)))


def image(draw: Draw, b: ModelBuilder, name: str, dtype: str, channels: int) -> Tensor:
    size = (draw(st.integers(7, 11)), draw(st.integers(7, 11)))  # a dilated 4x4 window fits
    return input_tensor(draw, b, name, dtype, (draw(st.sampled_from([1, 1, 2])), *size, channels))


def any_shape(draw: Draw) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))


def window(draw: Draw, *, dilated: bool) -> dict[str, Any]:
    """Stride, dilation, padding; LiteRT takes a dilation other than 1 only with stride 1."""
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 2)])) if dilated else (1, 1)
    stride = (1, 1) if dilation != (1, 1) else (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    found = {"stride": stride, "padding": draw(st.sampled_from(["same", "valid"])), "activation": draw(ACTIVATIONS)}
    return found | ({"dilation": dilation} if dilated else {})


def weights(draw: Draw, x: Tensor, shape: tuple[int, ...], units: int, axis: int) -> dict[str, Any]:
    """Weights, bias, their scales, and an output scale that spreads the sums over the output's range."""
    depth = int(np.prod(shape)) // units
    if x.dtype == "int8":
        scale: Any = [draw(SCALES) for _ in range(min(units, 3))]
        scale = (scale * units)[:units]
        kind = {"weight_scale": scale, "weight_dtype": draw(st.sampled_from(["", "", "int4"]))}
        array = values(draw, shape, "int8", -127) >> (4 if kind["weight_dtype"] else 0)
    else:
        scale = draw(SCALES)
        kind = {"weight_scale": scale, "weight_zero_point": draw(zero_points("uint8"))}
        array = values(draw, shape, "uint8")
    spread = draw(st.floats(0.5, 4.0)) * float(np.mean(scale)) * x.scale[0] * 74 * depth**0.5  # of the sums
    out = (float(np.float32(spread * 74 / 64)), draw(zero_points(x.dtype)))
    bias = np.random.default_rng(depth).integers(-2000, 2000, units).astype(np.int32)
    return {"weights": array, "bias": bias, "out": out, **kind}


def conv2d(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    depth, units = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    x = image(draw, b, name, dtype, depth * groups)
    kernel = draw(st.sampled_from([(1, 1), (1, 1), (3, 3), (2, 3), (1, 2)]))
    made = weights(draw, x, (units * groups, *kernel, depth), units * groups, 0)
    return b.conv2d(x, **made, **window(draw, dilated=True), name=name)


def depthwise_conv2d(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    channels, multiplier = draw(st.integers(1, 9)), draw(st.sampled_from([1, 1, 2, 3]))
    x = image(draw, b, name, dtype, channels)
    kernel = draw(st.sampled_from([(3, 3), (3, 3), (1, 3), (2, 2), (4, 1)]))
    made = weights(draw, x, (1, *kernel, channels * multiplier), channels * multiplier, 3)
    return b.depthwise_conv2d(x, **made, **window(draw, dilated=True), name=name)


def fully_connected(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    depth, units = draw(st.integers(1, 70)), draw(st.integers(1, 20))
    x = input_tensor(draw, b, name, dtype, (draw(st.integers(1, 4)), depth))
    made = weights(draw, x, (units, depth), units, 0)
    if dtype == "int8":
        made["weight_scale"] = made["weight_scale"][0]  # per channel is not in every LiteRT
    if draw(st.booleans()):
        made["bias"] = None
    return b.fully_connected(x, **made, activation=draw(ACTIVATIONS), name=name)


def pool2d(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    x = image(draw, b, name, dtype, draw(st.integers(1, 6)))
    add = draw(st.sampled_from([b.avg_pool2d, b.max_pool2d]))
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    return add(x, kernel, **window(draw, dilated=False), name=name)


def binary(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    """ADD, SUB or MUL; the second operand may broadcast."""
    shape = any_shape(draw)
    other = tuple(draw(st.sampled_from([n, n, 1])) for n in shape)
    x = input_tensor(draw, b, name, dtype, shape)
    y = input_tensor(draw, b, f"{name}/other", dtype, other)
    kind = draw(st.sampled_from(["add", "sub", "mul"]))
    size = x.scale[0] * y.scale[0] * 74 if kind == "mul" else max(x.scale[0], y.scale[0])
    out = (float(np.float32(size * draw(st.floats(0.7, 3.0)))), draw(zero_points(dtype)))
    return getattr(b, kind)(x, y, activation=draw(ACTIVATIONS), out=out, name=name)


def activation(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    x = input_tensor(draw, b, name, dtype, any_shape(draw))
    kind = draw(st.sampled_from(["relu", "relu6", "leaky_relu", "hard_swish", "logistic", "tanh", "quantize"]))
    out = (x.scale[0] * draw(st.sampled_from([1.0, 0.5, 1.7])), draw(zero_points(dtype)))
    if kind == "quantize":
        return b.quantize(x, dtype, out, name=name)
    if kind in ("logistic", "tanh"):
        return getattr(b, kind)(x, name=name)
    return getattr(b, kind)(x, out=out, name=name)


def mean(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    shape = any_shape(draw)
    axes = (
        draw(st.sampled_from([(1, 2), (1, 2), (2,), (3,)]))
        if len(shape) == 4
        else (draw(st.integers(0, len(shape) - 1)),)
    )
    x = input_tensor(draw, b, name, dtype, shape)
    out = draw(st.sampled_from([None, (x.scale[0] * 0.6, draw(zero_points(dtype)))]))
    return b.mean(x, axes, keep_dims=draw(st.booleans()), out=out, name=name)


def softmax(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, 40)))
    return b.softmax(input_tensor(draw, b, name, dtype, shape), draw(st.sampled_from([1.0, 0.5, 3.0])), name=name)


def movement(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    shape = any_shape(draw)
    x = input_tensor(draw, b, name, dtype, shape)
    kind = draw(st.sampled_from(["pad", "transpose", "slice", "strided_slice", "split", "resize", "concatenation"]))
    if kind == "pad":
        return b.pad(x, [(draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in shape], name=name)
    if kind == "transpose":
        return b.transpose(x, draw(st.permutations(range(len(shape)))), name=name)
    begin = [draw(st.integers(0, n - 1)) for n in shape]
    if kind == "slice":
        return b.slice(x, begin, [draw(st.integers(1, n - i)) for i, n in zip(begin, shape, strict=True)], name=name)
    if kind == "strided_slice":
        return b.strided_slice(x, begin, shape, [draw(st.integers(1, 3)) for _ in shape], name=name)
    if kind == "split":
        axis = draw(st.integers(0, len(shape) - 1))
        return b.split(x, draw(st.sampled_from([n for n in range(1, 10) if shape[axis] % n == 0])), axis, name=name)[-1]
    if kind == "concatenation" or len(shape) != 4:
        y = b.input(f"{name}/other", shape, dtype, x.scale[0], x.zero_point[0])
        return b.concatenation([x, y, x], draw(st.integers(0, len(shape) - 1)), name=name)
    size = (draw(st.integers(1, 12)), draw(st.integers(1, 12)))
    align, half = draw(st.sampled_from([(False, False), (True, False), (False, True)]))
    return b.resize_nearest_neighbor(x, size, align_corners=align, half_pixel_centers=half, name=name)


def picking(draw: Draw, b: ModelBuilder, name: str, dtype: str) -> Tensor:
    """GATHER with constant indices, TILE, MIRROR_PAD, REVERSE_V2, PACK, UNPACK, SELECT_V2 of a comparison."""
    shape = any_shape(draw)
    x = input_tensor(draw, b, name, dtype, shape)
    axis = draw(st.integers(0, len(shape) - 1))

    def known(numbers: Any) -> Tensor:
        return b.constant(f"{name}/known", np.array(numbers, np.int32))

    kind = draw(st.sampled_from(["GATHER", "TILE", "MIRROR_PAD", "REVERSE_V2", "PACK", "UNPACK", "SELECT_V2"]))
    if kind == "GATHER":
        indices = draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=6))
        return b.emit(kind, [x, known(indices)], None, None, name, "GatherOptions", {"axis": axis, "batchDims": 0})
    if kind == "TILE":
        return b.emit(kind, [x, known([draw(st.integers(1, 3)) for _ in shape])], None, None, name)
    if kind == "MIRROR_PAD":
        pads = [[draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))] for n in shape]
        return b.emit(kind, [x, known(pads)], None, None, name, "MirrorPadOptions", {"mode": 0})
    if kind == "REVERSE_V2":
        return b.emit(kind, [x, known([axis])], None, None, name)
    if kind == "PACK":
        y = b.input(f"{name}/other", shape, dtype, x.scale[0], x.zero_point[0])
        return b.emit(kind, [x, y], None, None, name, "PackOptions", {"valuesCount": 2, "axis": axis})
    if kind == "UNPACK":
        rest = (*shape[:axis], *shape[axis + 1 :])
        parts = [b.tensor(name, rest, dtype, x.scale, x.zero_point) for _ in range(shape[axis])]
        b.operator(kind, [x], parts, "UnpackOptions", {"num": len(parts), "axis": axis})
        return parts[-1]
    y = input_tensor(draw, b, f"{name}/other", dtype, shape)
    less = b.tensor(f"{name}/less", shape, "bool")
    b.operator("LESS", [x, y], [less])
    chosen = b.tensor(name, shape, dtype, x.scale, x.zero_point)
    b.operator(kind, [less, x, y], [chosen])
    return chosen


OPERATORS = {
    f.__name__: f
    for f in (conv2d, depthwise_conv2d, fully_connected, pool2d, binary, activation, mean, softmax, movement, picking)
}


def model(draw: Draw, dtype: str, names: tuple[str, ...]) -> bytes:
    """One model with these operators side by side, so that one build tests all of them."""
    b = ModelBuilder()
    b.output(*(OPERATORS[name](draw, b, f"{name}{i}", dtype) for i, name in enumerate(names)))
    return b.build()
