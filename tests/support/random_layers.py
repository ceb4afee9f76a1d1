"""Layers with random shapes and arithmetic, for tests of kernels: a LayerView and inputs for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stages.graph import (
    Activation,
    Add,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Dequantize,
    FullyConnected,
    L2Normalization,
    Layer,
    LayerView,
    Mean,
    Move,
    Mul,
    Op,
    Pool2D,
    Quantize,
    Requantize,
    Softmax,
    Tensor,
)

WINDOW_DRAWS = 100


@dataclass
class Draw:
    """A source of random choices; `dtype` is that of the activations."""

    seed: int
    dtype: str = "int8"
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def integer(self, low: int, high: int) -> int:
        """Both bounds included."""
        return int(self.rng.integers(low, high + 1))

    def choose(self, *values: Any) -> Any:
        return values[self.integer(0, len(values) - 1)]

    def array(self, shape: tuple[int, ...], dtype: str = "") -> np.ndarray:
        """Any values of an 8-bit type; for float32, halves and what lies near them."""
        if dtype == "float32":
            near = self.rng.choice(np.array([0, 1e-8, -1e-8, 0.003], np.float32), shape)
            return (self.rng.integers(-300, 301, shape) * 0.25 + near).astype(np.float32)
        bounds = np.iinfo(dtype or self.dtype)
        return self.rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype or self.dtype)

    def zero_point(self, dtype: str = "") -> int:
        """Mostly near the middle of the type; one in five is one of its bounds."""
        bounds = np.iinfo(dtype or self.dtype)
        middle = (int(bounds.max) + int(bounds.min)) // 2
        if self.integer(0, 4) == 0:
            return int(self.choose(bounds.min, bounds.max))
        return self.integer(middle - 60, middle + 60)

    def clamped(self) -> dict[str, int]:
        """Output zero point and bounds: all of the type, or those of a fused RELU."""
        bounds, zero_point = np.iinfo(self.dtype), self.zero_point()
        return {
            "output_zero_point": zero_point,
            "act_min": self.choose(int(bounds.min), int(bounds.min), min(zero_point, 100)),
            "act_max": int(bounds.max),
        }

    def layout(self) -> str:
        return str(self.choose("NHWC", "NCHW"))

    def channel_constants(self, units: int, depth: int) -> dict[str, np.ndarray]:
        """Bias, multiplier and shift that spread sums of `depth` products over the output's range."""
        middle = -int(np.log2(max(depth, 1)) / 2 + 6)
        return {
            "bias": self.rng.integers(-4000, 4000, units).astype(np.int32),
            "multiplier": self.rng.integers(1 << 30, 1 << 31, units).astype(np.int32),
            "shift": self.rng.integers(middle - 2, middle + 3, units).astype(np.int32),
        }


def view(op: Op, inputs: list[Tensor], output: Tensor, constants: dict[str, np.ndarray] | None = None) -> LayerView:
    """A layer on its own."""
    names = {role: f"layer.{role}" for role in constants or {}}
    layer = Layer(
        index=0, name="layer", op=op, inputs=tuple(t.name for t in inputs), outputs=(output.name,), constants=names
    )
    arrays = {names[role]: array for role, array in (constants or {}).items()}
    return LayerView(layer, {t.name: t for t in [*inputs, output]}, arrays)


def image(name: str, shape: tuple[int, ...], dtype: str, layout: str) -> Tensor:
    return Tensor(name=name, shape=shape, dtype=dtype, layout=layout)  # type: ignore[arg-type]


def window(draw: Draw, *, dilated: bool = True) -> tuple[dict[str, Any], tuple[int, int], tuple[int, int]]:
    """Fields of a sliding window, and an input and output size it fits; every window meets the image."""
    for _ in range(WINDOW_DRAWS):
        kernel = (draw.integer(1, 4), draw.integer(1, 4))
        dilation = (draw.integer(1, 2), draw.integer(1, 2)) if dilated else (1, 1)
        stride = (draw.integer(1, 3), draw.integer(1, 3))
        padding = [draw.integer(0, kernel[i % 2] - 1) for i in range(4)]
        if draw.integer(0, 3) == 0:
            kernel, dilation, stride, padding = (1, 1), (1, 1), (1, 1), [0, 0, 0, 0]
        size = (draw.integer(1, 11), draw.integer(1, 11))
        spans = [size[i] + padding[i] + padding[i + 2] - (kernel[i] - 1) * dilation[i] - 1 for i in range(2)]
        if min(spans) >= 0:
            out = (spans[0] // stride[0] + 1, spans[1] // stride[1] + 1)
            fields = {"kernel": kernel, "stride": stride, "padding": tuple(padding)}
            return (fields | {"dilation": dilation} if dilated else fields), size, out
    raise AssertionError("no window fits")


def weight_type(draw: Draw) -> tuple[str, int]:
    """Type and zero point: int8 weights have none, uint8 ones go with uint8 activations."""
    dtype = "int8" if draw.dtype == "int8" else str(draw.choose("int8", "uint8", "uint8"))
    return dtype, draw.zero_point("uint8") if dtype == "uint8" else 0


def conv2d(draw: Draw, layouts: tuple[str, str] | None = None) -> LayerView:
    fields, size, out = window(draw)
    groups, depth, units = draw.choose(1, 1, 1, 2, 3), draw.integer(1, 9), draw.integer(1, 10)
    dtype, weight_zero_point = weight_type(draw)
    layout = str(draw.choose("OHWI", "HWIO", "OIHW"))
    weights = draw.array((groups * units, *fields["kernel"], depth), dtype)
    batch, (data, result) = draw.integer(1, 2), layouts or (draw.layout(), draw.layout())
    op = Conv2D(
        **fields,
        **draw.clamped(),
        groups=groups,
        in_channels=groups * depth,
        out_channels=groups * units,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
        kernel_layout=layout,  # type: ignore[arg-type]
        rounding=draw.choose("double", "single"),
    )
    constants = draw.channel_constants(groups * units, weights[0].size)
    constants["weights"] = np.ascontiguousarray(weights.transpose(["OHWI".index(axis) for axis in layout]))
    x = image("x", (batch, *size, groups * depth), draw.dtype, data)
    return view(op, [x], image("y", (batch, *out, groups * units), draw.dtype, result), constants)


def depthwise_conv2d(draw: Draw, layouts: tuple[str, str] | None = None) -> LayerView:
    fields, size, out = window(draw)
    channels, multiplier = draw.integer(1, 11), draw.choose(1, 1, 2, 3)
    dtype, weight_zero_point = weight_type(draw)
    layout = str(draw.choose("HWC", "OIHW"))
    count = channels * multiplier
    weights = draw.array((1, *fields["kernel"], count) if layout == "HWC" else (count, 1, *fields["kernel"]), dtype)
    batch, (data, result) = draw.integer(1, 2), layouts or (draw.layout(), draw.layout())
    op = DepthwiseConv2D(
        **fields,
        **draw.clamped(),
        depth_multiplier=multiplier,
        in_channels=channels,
        out_channels=count,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
        kernel_layout=layout,  # type: ignore[arg-type]
        rounding=draw.choose("double", "single"),
    )
    constants = draw.channel_constants(count, weights.size // count) | {"weights": weights}
    x = image("x", (batch, *size, channels), draw.dtype, data)
    return view(op, [x], image("y", (batch, *out, count), draw.dtype, result), constants)


def fully_connected(draw: Draw) -> LayerView:
    batch, depth, units = draw.integer(1, 5), draw.integer(1, 40), draw.integer(2, 13)
    dtype, weight_zero_point = weight_type(draw)
    op = FullyConnected(
        **draw.clamped(),
        batch=batch,
        depth=depth,
        units=units,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
        rounding=draw.choose("double", "single"),
    )
    constants = draw.channel_constants(units, depth) | {"weights": draw.array((units, depth), dtype)}
    if draw.integer(0, 3) == 0:
        del constants["bias"]
    x = image("x", (batch, depth), draw.dtype, "")
    return view(op, [x], image("y", (batch, units), draw.dtype, ""), constants)


def pool2d(draw: Draw, layouts: tuple[str, str] | None = None) -> LayerView:
    fields, size, out = window(draw, dilated=False)
    channels, batch = draw.integer(1, 6), draw.integer(1, 2)
    data, result = layouts or (draw.layout(), draw.layout())
    op = Pool2D(op=draw.choose("avg_pool2d", "max_pool2d"), **fields, **draw.clamped())
    x = image("x", (batch, *size, channels), draw.dtype, data)
    return view(op, [x], image("y", (batch, *out, channels), draw.dtype, result))


def shape(draw: Draw) -> tuple[int, ...]:
    return tuple(draw.choose(1, 2, 3, 4, 5, 6, 9) for _ in range(draw.integer(1, 4)))


def multiplier(draw: Draw, low: int, high: int) -> tuple[int, int]:
    """A fixed-point multiplier and its shift in [low, high]."""
    return draw.integer(1 << 30, (1 << 31) - 1), draw.integer(low, high)


def operands(draw: Draw) -> tuple[list[Tensor], Tensor]:
    """Two inputs that broadcast, and the output."""
    full = shape(draw)
    shapes = [list(full), list(full)]
    for axis in range(len(full)):
        if draw.integer(0, 3) == 0:
            shapes[draw.integer(0, 1)][axis] = 1
    trimmed = draw.integer(0, 2) == 0
    if trimmed:
        shapes[1] = shapes[1][draw.integer(0, len(full) - 1) :]
    layout = draw.layout() if len(full) == 4 and not trimmed else ""
    tensors = [image(f"x{i}", tuple(s), draw.dtype, layout if len(s) == 4 else "") for i, s in enumerate(shapes)]
    return tensors, image("y", tuple(np.broadcast_shapes(*shapes)), draw.dtype, layout)


def add(draw: Draw) -> LayerView:
    inputs, output = operands(draw)
    first, second = multiplier(draw, -4, 0), multiplier(draw, -4, 0)
    scale = multiplier(draw, -21, -18)
    op = Add(
        op=draw.choose("add", "sub"),
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        left_shift=20,
        multipliers=(first[0], second[0]),
        shifts=(first[1], second[1]),
        output_multiplier=scale[0],
        output_shift=scale[1],
        rounding=draw.choose("double", "single"),
    )
    return view(op, inputs, output)


def mul(draw: Draw) -> LayerView:
    inputs, output = operands(draw)
    scale = multiplier(draw, *draw.choose((-8, -6), (-8, -6), (0, 1)))
    op = Mul(
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        output_multiplier=scale[0],
        output_shift=scale[1],
        rounding=draw.choose("double", "single"),
    )
    return view(op, inputs, output)


def activation(draw: Draw) -> LayerView:
    size, kind = shape(draw), draw.choose("int8", "uint8")
    layout = draw.layout() if len(size) == 4 else ""
    table = draw.array((256,), kind)
    output = image("y", size, kind, layout)
    return view(Activation(function="tanh"), [image("x", size, draw.dtype, layout)], output, {"table": table})


def requantize(draw: Draw) -> LayerView:
    size, layout = shape(draw), ""
    scale, result = multiplier(draw, -3, 2), Draw(draw.seed, draw.choose("int8", "uint8"))
    op = Requantize(
        **result.clamped(),
        input_zero_point=draw.zero_point(),
        multiplier=scale[0],
        shift=scale[1],
        rounding=draw.choose("double", "single"),
    )
    return view(op, [image("x", size, draw.dtype, layout)], image("y", size, result.dtype, layout))


def quantize(draw: Draw) -> LayerView:
    size = shape(draw)
    op = Quantize(**draw.clamped(), scale=float(np.float32(draw.choose(0.5, 0.1, 0.037, 3.0))))
    return view(op, [image("x", size, "float32", "")], image("y", size, draw.dtype, ""))


def dequantize(draw: Draw) -> LayerView:
    size = shape(draw)
    op = Dequantize(input_zero_point=draw.zero_point(), scale=float(np.float32(draw.choose(0.5, 0.1, 0.037))))
    return view(op, [image("x", size, draw.dtype, "")], image("y", size, "float32", ""))


def mean(draw: Draw) -> LayerView:
    size = shape(draw)
    axes = tuple(axis for axis in range(len(size)) if draw.integer(0, 1)) or (draw.integer(0, len(size) - 1),)
    if len(size) == 4 and draw.integer(0, 1):
        axes = (1, 2)
    keep = draw.integer(0, 1)
    out = tuple(1 if i in axes else n for i, n in enumerate(size) if keep or i not in axes)
    count = int(np.prod([size[axis] for axis in axes]))
    scale = multiplier(draw, -2, 1)
    op = Mean(
        **draw.clamped(),
        axes=axes,
        input_zero_point=draw.zero_point(),
        multiplier=scale[0],
        shift=scale[1] - int(np.ceil(np.log2(count))),
        count=count,
        rounding=draw.choose("double", "single"),
    )
    layout = draw.layout() if len(size) == 4 else ""
    y = image("y", out, draw.dtype, draw.layout() if len(out) == 4 else "")
    return view(op, [image("x", size, draw.dtype, layout)], y)


def softmax(draw: Draw) -> LayerView:
    """The constant as the quantize stage makes it: exp(-scale * d) in Q0.31."""
    size = (*shape(draw)[:3], draw.choose(1, 2, 10, 300, draw.integer(1, 40)))
    scale = draw.choose(0.004, 0.05, 0.3)
    powers = np.minimum(np.round(np.exp(-scale * np.arange(256)) * 2**31), 2**31 - 1).astype(np.int32)
    powers[draw.integer(1, 255) :] = 0
    layouts = [draw.layout() if len(size) == 4 else "" for _ in range(2)]
    tensors = [image(name, size, draw.dtype, layout) for name, layout in zip("xy", layouts, strict=True)]
    return view(Softmax(), [tensors[0]], tensors[1], {"exp": powers})


def concatenation(draw: Draw) -> LayerView:
    size, dtype = list(shape(draw)), draw.choose(draw.dtype, draw.dtype, "int32")
    axis = draw.integer(0, len(size) - 1)
    layout = draw.layout() if len(size) == 4 else ""
    inputs = []
    for number in range(draw.integer(1, 4)):
        size[axis] = draw.integer(1, 20)
        inputs.append(image(f"x{number}", tuple(size), dtype, layout))
    size[axis] = sum(x.shape[axis] for x in inputs)
    return view(Concatenation(axis=draw.choose(axis, axis - len(size))), inputs, image("y", tuple(size), dtype, layout))


def move(draw: Draw) -> LayerView:
    """Every kind; a third of them on int32."""
    slices = ("slice", "strided_slice", "split")
    kind = draw.choose(*slices, "pad", "transpose", "layout", "resize_nearest_neighbor", "reshape")
    dtype = draw.choose(draw.dtype, draw.dtype, "int32")
    size = tuple(draw.integer(1, 7) for _ in range(4)) if kind in ("layout", "resize_nearest_neighbor") else shape(draw)
    if draw.integer(0, 2) == 0:
        size = (*size[:-1], draw.integer(16, 40))
    out, params = _moved(draw, kind, size)
    layouts = [draw.layout() if len(s) == 4 else "" for s in (size, out)]
    if kind == "reshape":
        layouts[draw.integer(0, 1)] = ""
    op = Move(kind=kind, params=params)
    return view(op, [image("x", size, dtype, layouts[0])], image("y", out, dtype, layouts[1]))


def _moved(draw: Draw, kind: str, size: tuple[int, ...]) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The output's shape and the parameters."""
    if kind == "pad":
        before, after = ([draw.integer(0, 3) for _ in size] for _ in range(2))
        params = {"before": before, "after": after, "value": draw.integer(0, 127)}
        return tuple(a + n + b for a, n, b in zip(before, size, after, strict=True)), params
    if kind == "transpose":
        permutation = [int(axis) for axis in draw.rng.permutation(len(size))]
        return tuple(size[axis] for axis in permutation), {"permutation": permutation}
    if kind in ("slice", "strided_slice", "split"):
        begin, stride, count = [], [], []
        for n in size:
            step = draw.choose(1, 2, -1, -2) if kind == "strided_slice" else 1
            begin.append(draw.integer(0, n - 1))
            count.append(draw.integer(1, (begin[-1] if step < 0 else n - 1 - begin[-1]) // abs(step) + 1))
            stride.append(step)
        dropped = kind == "strided_slice" and draw.integer(0, 1)
        out = tuple(n for n in count if n > 1 or not dropped)
        return out, {"begin": begin, "stride": stride, "size": count}
    if kind == "resize_nearest_neighbor":
        out = (size[0], draw.integer(1, 9), draw.integer(1, 9), size[3])
        tables = [[draw.integer(0, size[i] - 1) for _ in range(out[i])] for i in (1, 2)]
        return out, {"rows": tables[0], "columns": tables[1]}
    if kind == "reshape":
        return (int(np.prod(size)),), {}
    return size, {}


def l2_normalization(draw: Draw) -> LayerView:
    size = (*shape(draw)[:3], draw.choose(1, 2, 10, 700, draw.integer(1, 40)))
    layouts = [draw.layout() if len(size) == 4 else "" for _ in range(2)]
    x, y = (image(name, size, draw.dtype, layout) for name, layout in zip("xy", layouts, strict=True))
    return view(L2Normalization(input_zero_point=draw.zero_point()), [x], y)
