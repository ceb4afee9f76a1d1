"""MaxPool and AveragePool, of real numbers and of integers with scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import onnx

from stages.import_model.onnx.operators.evaluated import evaluated
from stages.import_model.onnx.operators.weights import Weights
from stages.import_model.onnx.operators.windows import Pads, Window, as_image, convolve, from_image
from stages.import_model.onnx.translation import MICROSOFT, Node, Out, Translation, check_rank
from stages.import_model.onnx.values import Array, Held, Real
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

_MOST_PARTS = 25  # of an image whose windows have several divisors: what a window of 5x5 with pads of 2 takes


def max_pool(t: Translation, node: Node, x: Held) -> Held:
    """MaxPool, whose padding takes no part."""
    check_rank(x, (3, 4))
    if len(node.outputs) > 1 and node.outputs[1]:
        raise Refused("gives the places of its maxima as well")
    window = Window.of(node, x, node.attributes["kernel_shape"])
    if window.dilation != (1, 1):
        raise Refused(f"is dilated by {listed(window.dilation)}")
    image = as_image(t, x)
    padding, name = window.padding(image.shape[1:3]), node.outputs[0]
    if padding is None:
        image, padding = _padded_lowest(t, image, window.pads, f"{name}/padded"), "valid"
    made = t.builder.max_pool2d(image, window.kernel, window.stride, padding=padding, name=_pool_name(x, name))
    return from_image(t, made, len(x.shape), name)


def _padded_lowest(t: Translation, image: Tensor, pads: Pads, name: str) -> Tensor:
    lowest = np.full((1,), -128, np.int8) if image.scale else np.full((1,), np.finfo(np.float32).min, np.float32)
    amounts = np.array([(0, 0), *pads, (0, 0)], np.int32)
    quant = (image.scale[0], image.zero_point[0]) if image.scale else (None, 0)
    value, constant = t.builder.constant(f"{name}/value", lowest, *quant), t.builder.constant(f"{name}/pads", amounts)
    shape = [size + sum(pair) for size, pair in zip(image.shape, amounts.tolist(), strict=True)]
    return t.builder.emit("PADV2", [image, constant, value], shape, None, name, "PadV2Options")


def _pool_name(x: Held, name: str) -> str:
    return f"{name}/image" if len(x.shape) == 3 else name


@dataclass(frozen=True)
class _Along:
    """Windows with the same taps inside of the image, along one axis: `places` from `first` on.

    taps   of each window that lie inside
    begin  the first element of the image that the first window meets
    """

    first: int
    places: int
    taps: int
    begin: int


@dataclass(frozen=True)
class _Averages:
    """The windows of an AveragePool, and what the sum of each is divided by, [H, W]."""

    window: Window
    image: tuple[int, int]
    divisors: Array

    @classmethod
    def of(cls, t: Translation, node: Node, x: Held) -> _Averages:
        """Divisors are those with which ONNX Runtime averages ones. Refused for windows that lie in padding alone."""
        check_rank(x, (3, 4))
        window, rank = Window.of(node, x, node.attributes["kernel_shape"]), len(x.shape) - 2
        image = (1, x.shape[2]) if rank == 1 else (x.shape[2], x.shape[3])
        kept = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides")
        options = {name: node.attributes[name] for name in kept if name in node.attributes}
        pool = Node(node.index, onnx.helper.make_node("AveragePool", ["x"], ["y"], node.name, **options))
        ones = evaluated(t, pool, np.ones((1, 1, *x.shape[2:]), np.float32))
        made = cls(window, image, np.ones(0))
        inside = np.multiply.outer(*(made.taps(axis).sum(axis=1) for axis in (0, 1)))
        shares = ones.reshape((1, *ones.shape[2:]) if rank == 1 else ones.shape[2:])
        if shares.shape != inside.shape:
            raise Refused(f"has {listed(inside.shape)} windows, and ONNX Runtime {listed(shares.shape)}")
        if not inside.all():
            raise Refused(f"has windows {listed(window.kernel)} that lie in the padding {list(window.pads)} alone")
        divisors = np.rint(inside / shares).astype(np.int64)
        if node.op == f"{MICROSOFT}.QLinearAveragePool" and node.attributes.get("count_include_pad", 0):
            divisors[:] = window.kernel[0] * window.kernel[1]  # there what ceil_mode adds counts as well
        return cls(window, image, divisors)

    def taps(self, axis: int) -> Array:
        """For each place of a window along the axis which of its taps are inside of the image, bool[places, taps]."""
        window, (before, after) = self.window, self.window.pads[axis]
        size, stride, dilation = self.image[axis], window.stride[axis], window.dilation[axis]
        reach = (window.kernel[axis] - 1) * dilation + 1
        starts = np.arange((size + before + after - reach) // stride + 1) * stride - before
        met = starts[:, None] + np.arange(window.kernel[axis]) * dilation
        return np.asarray((met >= 0) & (met < size))

    def runs(self, axis: int) -> Iterator[_Along]:
        """Neighbouring places with the same taps inside and the same divisors."""
        taps, divisors = self.taps(axis), self.divisors if axis == 0 else self.divisors.T
        keys = [(tuple(taps[at]), tuple(divisors[at])) for at in range(len(taps))]
        first = 0
        for (inside, _), group in groupby(keys):
            count, begin = len(list(group)), inside.index(True)
            met = first * self.window.stride[axis] - self.window.pads[axis][0] + begin * self.window.dilation[axis]
            yield _Along(first, count, sum(inside), met)
            first += count


def average_pool(t: Translation, node: Node) -> None:
    """AveragePool of real numbers, or between integers."""
    value = t.value(node, 0)
    if isinstance(value, Real):
        out = t.destination(node, integers=True)
        if out is not None and average_integers(t, node, value.held, out, sums="float"):
            return
    x, out = t.held(node, 0), t.destination(node, integers=False)
    assert out is not None
    averages = _Averages.of(t, node, x)
    window, image, name = averages.window, as_image(t, x), _pool_name(x, out.name)
    padding, whole = window.padding(image.shape[1:3]), window.kernel[0] * window.kernel[1]
    inside = np.multiply.outer(*(averages.taps(axis).sum(axis=1) for axis in (0, 1)))
    if padding is not None and window.dilation == (1, 1) and (averages.divisors == inside).all():
        made = t.builder.avg_pool2d(
            image, window.kernel, window.stride, padding=padding, activation=out.activation, name=name
        )
        t.finish(out, from_image(t, made, len(x.shape), out.name))
        return
    if window.padded:
        image = t.builder.pad(image, [(0, 0), *window.pads, (0, 0)], name=f"{out.name}/padded")
    one = bool((averages.divisors == whole).all())
    options: dict[str, Any] = {
        "stride": window.stride,
        "padding": "valid",
        "activation": out.activation if one else "none",
        "name": name if one else f"{out.name}/sums",
    }
    if window.dilation == (1, 1):
        made = t.builder.avg_pool2d(image, window.kernel, **options)
    else:
        weights = np.full((1, *window.kernel, image.shape[3]), 1 / whole, np.float32)
        made = t.builder.depthwise_conv2d(image, weights, None, dilation=window.dilation, **options)
    if not one:
        shares = (whole / averages.divisors).astype(np.float32)[None, :, :, None]
        factor = t.builder.constant(f"{out.name}/shares", shares)
        made = t.builder.mul(made, factor, activation=out.activation, name=name)
    t.finish(out, from_image(t, made, len(x.shape), out.name))


def average_integers(t: Translation, node: Node, x: Held, out: Out, **rule: Any) -> bool:
    """Appends a depthwise convolution by ones for each part of the image whose windows have one divisor.

    False, and nothing is appended, where these are too many.
    """
    averages = _Averages.of(t, node, x)
    divisor = averages.divisors[0, 0]
    if (averages.divisors == divisor).all():
        ones = np.ones((x.shape[1], 1, *node.attributes["kernel_shape"]), np.int8)
        grouped = Node(node.index, node.copied(node.inputs, node.outputs))
        grouped.proto.attribute.append(onnx.helper.make_attribute("group", x.shape[1]))
        convolve(t, grouped, x, Weights(ones, np.array([1 / divisor], np.float32)), None, out, **rule)
        return True
    rows, columns = list(averages.runs(0)), list(averages.runs(1))
    if len(rows) * len(columns) > _MOST_PARTS:
        return False
    image, name = as_image(t, x), _pool_name(x, out.name)
    lines = []
    for at, row in enumerate(rows):
        called = name if len(rows) == 1 else f"{out.name}/rows{at}"
        parts = [
            _averaged(t, averages, image, row, column, out, called if len(columns) == 1 else f"{called}/{beside}", rule)
            for beside, column in enumerate(columns)
        ]
        lines.append(parts[0] if len(parts) == 1 else t.builder.concatenation(parts, 2, name=called))
    made = lines[0] if len(lines) == 1 else t.builder.concatenation(lines, 1, name=name)
    t.finish(out, from_image(t, made, len(x.shape), out.name))
    return True


def _averaged(
    t: Translation,
    averages: _Averages,
    image: Tensor,
    row: _Along,
    column: _Along,
    out: Out,
    name: str,
    rule: dict[str, Any],
) -> Tensor:
    """The averages of one part of the image."""
    window, (batch, height, width, channels) = averages.window, image.shape
    sizes = [
        (along.places - 1) * stride + (along.taps - 1) * dilation + 1
        for along, stride, dilation in zip((row, column), window.stride, window.dilation, strict=True)
    ]
    if sizes != [height, width]:
        begins = [0, row.begin, column.begin, 0]
        image = t.builder.slice(image, begins, [batch, *sizes, channels], name=f"{name}/part")
    divisor = averages.divisors[row.first, column.first]
    made = t.builder.depthwise_conv2d(
        image,
        np.ones((1, row.taps, column.taps, channels), np.int8),
        np.zeros(channels, np.int32),
        weight_scale=np.array([1 / divisor], np.float32),
        stride=window.stride,
        dilation=window.dilation,
        padding="valid",
        activation=out.activation,
        out=out.quant,
        name=name,
    )
    t.rule(**rule)
    return made


TRANSLATORS: dict[str, Callable[[Translation, Node], None]] = {"AveragePool": average_pool}
MOVES: dict[str, Callable[[Translation, Node, Held], Held]] = {"MaxPool": max_pool}
