"""MaxPool and AveragePool, in float32 and between integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import onnx

from stages.import_model.onnx.operators.convolution import Pads, Window, as_image, convolve, from_image
from stages.import_model.onnx.operators.evaluate import evaluated
from stages.import_model.onnx.operators.weights import Weights
from stages.import_model.onnx.translation import MICROSOFT, Node, Out, Translation, Translator, check_rank
from stages.import_model.onnx.values import Dequantized, TensorView
from stages.ir.arrays import Array
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

_MOST_PARTS = 25  # image parts with different divisors: enough for a 5x5 window with pads of 2


def max_pool(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate MaxPool, which ignores the padding."""
    check_rank(x, (3, 4))
    if len(node.outputs) > 1 and node.outputs[1]:
        raise Refused("also returns the positions of its maxima, which is not supported")
    window = Window.of(node, x, node.attributes["kernel_shape"])
    if window.dilation != (1, 1):
        raise Refused(f"has the dilation {listed(window.dilation)}; only 1 is supported")
    image = as_image(t, x)
    padding, name = window.padding(image.shape[1:3]), node.outputs[0]
    if padding is None:
        image, padding = _padded_lowest(t, image, window.pads, f"{name}/padded"), "valid"
    pooled = t.builder.max_pool2d(image, window.kernel, window.stride, padding=padding, name=_pool_name(x, name))
    return from_image(t, pooled, len(x.shape), name)


def _padded_lowest(t: Translation, image: Tensor, pads: Pads, name: str) -> Tensor:
    lowest = np.full((1,), -128, np.int8) if image.scale else np.full((1,), np.finfo(np.float32).min, np.float32)
    amounts = np.array([(0, 0), *pads, (0, 0)], np.int32)
    quant = (image.scale[0], image.zero_point[0]) if image.scale else (None, 0)
    value, constant = t.builder.constant(f"{name}/value", lowest, *quant), t.builder.constant(f"{name}/pads", amounts)
    shape = [size + sum(pair) for size, pair in zip(image.shape, amounts.tolist(), strict=True)]
    return t.builder.emit("PADV2", [image, constant, value], shape, None, name, "PadV2Options")


def _pool_name(x: TensorView, name: str) -> str:
    return f"{name}/image" if len(x.shape) == 3 else name


@dataclass(frozen=True)
class _WindowRun:
    """Neighbouring windows along one axis with equal taps inside of the image.

    first, places  index of the first window, number of windows
    taps           taps of each window inside of the image
    begin          first image element of the first window
    """

    first: int
    places: int
    taps: int
    begin: int


@dataclass(frozen=True)
class _Averages:
    """Windows of an AveragePool, and the divisor of each sum, [H, W]."""

    window: Window
    image: tuple[int, int]
    divisors: Array

    @classmethod
    def of(cls, t: Translation, node: Node, x: TensorView) -> _Averages:
        """Return the windows, with ONNX Runtime's divisors, measured on ones.

        Raises Refused for windows that lie in the padding alone.
        """
        check_rank(x, (3, 4))
        window, rank = Window.of(node, x, node.attributes["kernel_shape"]), len(x.shape) - 2
        image = (1, x.shape[2]) if rank == 1 else (x.shape[2], x.shape[3])
        attribute_names = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides")
        options = {name: node.attributes[name] for name in attribute_names if name in node.attributes}
        pool = Node(node.index, onnx.helper.make_node("AveragePool", ["x"], ["y"], node.name, **options))
        ones = evaluated(t, pool, np.ones((1, 1, *x.shape[2:]), np.float32))
        averages = cls(window, image, np.ones(0))
        inside = np.multiply.outer(*(averages.taps(axis).sum(axis=1) for axis in (0, 1)))
        mean_of_ones = ones.reshape((1, *ones.shape[2:]) if rank == 1 else ones.shape[2:])
        if mean_of_ones.shape != inside.shape:
            raise Refused(f"has {listed(inside.shape)} windows, but ONNX Runtime computes {listed(mean_of_ones.shape)}")
        if not inside.all():
            raise Refused(f"has windows {listed(window.kernel)} that lie completely in the padding {list(window.pads)}")
        divisors = np.rint(inside / mean_of_ones).astype(np.int64)
        if node.op == f"{MICROSOFT}.QLinearAveragePool" and node.attributes.get("count_include_pad", 0):
            divisors[:] = window.kernel[0] * window.kernel[1]  # it also counts the padding that ceil_mode adds
        return cls(window, image, divisors)

    def taps(self, axis: int) -> Array:
        """Return for each window along the axis which taps are in the image, bool[windows, taps]."""
        window, (before, after) = self.window, self.window.pads[axis]
        size, stride, dilation = self.image[axis], window.stride[axis], window.dilation[axis]
        reach = (window.kernel[axis] - 1) * dilation + 1
        starts = np.arange((size + before + after - reach) // stride + 1) * stride - before
        positions = starts[:, None] + np.arange(window.kernel[axis]) * dilation
        return np.asarray((positions >= 0) & (positions < size))

    def runs(self, axis: int) -> Iterator[_WindowRun]:
        """Yield runs of windows with the same taps and divisors."""
        taps, divisors = self.taps(axis), self.divisors if axis == 0 else self.divisors.T
        keys = [(tuple(taps[at]), tuple(divisors[at])) for at in range(len(taps))]
        first = 0
        for (inside, _), group in groupby(keys):
            count, begin = len(list(group)), inside.index(True)
            first_position = (
                first * self.window.stride[axis] - self.window.pads[axis][0] + begin * self.window.dilation[axis]
            )
            yield _WindowRun(first, count, sum(inside), first_position)
            first += count


def average_pool(t: Translation, node: Node) -> None:
    """Translate AveragePool, in float32 or between integers."""
    value = t.value(node, 0)
    if isinstance(value, Dequantized):
        out = t.destination(node, integers=True)
        if out is not None and average_integers(t, node, value.integers, out, sums="float"):
            return
    x, out = t.computed(node, 0), t.destination(node, integers=False)
    assert out is not None
    averages = _Averages.of(t, node, x)
    window, image, name = averages.window, as_image(t, x), _pool_name(x, out.name)
    padding, window_size = window.padding(image.shape[1:3]), window.kernel[0] * window.kernel[1]
    inside = np.multiply.outer(*(averages.taps(axis).sum(axis=1) for axis in (0, 1)))
    if padding is not None and window.dilation == (1, 1) and (averages.divisors == inside).all():
        result = t.builder.avg_pool2d(
            image, window.kernel, window.stride, padding=padding, activation=out.activation, name=name
        )
        t.finish(out, from_image(t, result, len(x.shape), out.name))
        return
    if window.padded:
        image = t.builder.pad(image, [(0, 0), *window.pads, (0, 0)], name=f"{out.name}/padded")
    single_divisor = bool((averages.divisors == window_size).all())
    options: dict[str, Any] = {
        "stride": window.stride,
        "padding": "valid",
        "activation": out.activation if single_divisor else "none",
        "name": name if single_divisor else f"{out.name}/sums",
    }
    if window.dilation == (1, 1):
        result = t.builder.avg_pool2d(image, window.kernel, **options)
    else:
        weights = np.full((1, *window.kernel, image.shape[3]), 1 / window_size, np.float32)
        result = t.builder.depthwise_conv2d(image, weights, None, dilation=window.dilation, **options)
    if not single_divisor:
        ratios = (window_size / averages.divisors).astype(np.float32)[None, :, :, None]
        factor = t.builder.constant(f"{out.name}/shares", ratios)
        result = t.builder.mul(result, factor, activation=out.activation, name=name)
    t.finish(out, from_image(t, result, len(x.shape), out.name))


def average_integers(t: Translation, node: Node, x: TensorView, out: Out, **rule: Any) -> bool:
    """Append a depthwise convolution by ones for each image part with one divisor.

    Returns False, without change, if there are too many parts.
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
    row_tensors = []
    for row_number, row in enumerate(rows):
        row_name = name if len(rows) == 1 else f"{out.name}/rows{row_number}"
        parts = [
            _averaged(
                t,
                averages,
                image,
                row,
                column,
                out,
                row_name if len(columns) == 1 else f"{row_name}/{column_number}",
                rule,
            )
            for column_number, column in enumerate(columns)
        ]
        row_tensors.append(parts[0] if len(parts) == 1 else t.builder.concatenation(parts, 2, name=row_name))
    result = row_tensors[0] if len(row_tensors) == 1 else t.builder.concatenation(row_tensors, 1, name=name)
    t.finish(out, from_image(t, result, len(x.shape), out.name))
    return True


def _averaged(
    t: Translation,
    averages: _Averages,
    image: Tensor,
    row: _WindowRun,
    column: _WindowRun,
    out: Out,
    name: str,
    rule: dict[str, Any],
) -> Tensor:
    """Append the averages of one part of the image."""
    window, (batch, height, width, channels) = averages.window, image.shape
    sizes = [
        (run.places - 1) * stride + (run.taps - 1) * dilation + 1
        for run, stride, dilation in zip((row, column), window.stride, window.dilation, strict=True)
    ]
    if sizes != [height, width]:
        begins = [0, row.begin, column.begin, 0]
        image = t.builder.slice(image, begins, [batch, *sizes, channels], name=f"{name}/part")
    divisor = averages.divisors[row.first, column.first]
    result = t.builder.depthwise_conv2d(
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
    return result


TRANSLATORS: dict[str, Translator] = {"AveragePool": average_pool}
MOVES: dict[str, Callable[[Translation, Node, TensorView], TensorView]] = {"MaxPool": max_pool}
