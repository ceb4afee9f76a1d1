"""Operators that slide a window over an image, and fully connected ones: weights, strides, dilations, padding."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from stages.import_model.checks.operation import Operation, Refused, Shape, listed
from stages.models.naming import named
from stages.models.tflite_reader import TensorInfo

_SAME, _VALID = 0, 1
# What LiteRT's kernels take.
_LARGEST_WINDOW = 2**16
_LARGEST_STEP = 2**15 - 1
_INT32 = 2**31


def _pool(operation: Operation) -> list[Shape]:
    options = operation.options("Pool2DOptions")
    batch, height, width, channels = _image(operation.input(0))
    window, stride = (options["filter_h"], options["filter_w"]), (options["stride_h"], options["stride_w"])
    _positive(window, "a window")
    _at_most(window, _LARGEST_WINDOW, "a window")
    rows, columns = _slide((height, width), window, stride, (1, 1), options["padding"])
    return [(batch, rows, columns, channels)]


def _conv2d(operation: Operation) -> list[Shape]:
    options = operation.options("Conv2DOptions")
    batch, height, width, channels = _image(operation.input(0))
    weights = operation.input(1)
    filters, *kernel, depth = _filter(weights)
    if channels % depth:
        raise Refused(
            f"has {channels} channels in {named(operation.input(0))}, no multiple of {depth} in {_of(weights)}"
        )
    groups = channels // depth
    if filters % groups:
        raise Refused(f"has {groups} groups of channels, but {_of(weights)} has {filters} filters, no multiple of them")
    _bias(operation, filters)
    rows, columns = _convolve((height, width), tuple(kernel), options)
    return [(batch, rows, columns, filters)]


def _depthwise(operation: Operation) -> list[Shape]:
    options = operation.options("DepthwiseConv2DOptions")
    batch, height, width, channels = _image(operation.input(0))
    weights = operation.input(1)
    one, *kernel, filters = _filter(weights)
    if one != 1:
        raise Refused(f"has weights {_of(weights)}; their first size must be 1")
    multiplier = options["depth_multiplier"]
    if filters != channels * multiplier:
        raise Refused(
            f"has {channels} channels in {named(operation.input(0))} and a depth multiplier of {multiplier}, "
            f"but {filters} filters in {_of(weights)}"
        )
    _bias(operation, filters)
    rows, columns = _convolve((height, width), tuple(kernel), options)
    return [(batch, rows, columns, filters)]


def _fully_connected(operation: Operation) -> list[Shape]:
    options = operation.options("FullyConnectedOptions")
    data, weights = operation.input(0), operation.input(1)
    if len(weights.shape) != 2:
        raise Refused(f"has weights {_of(weights)}; they must have 2 axes, units and depth")
    if options["weights_format"]:
        raise Refused(f"has its weights {named(weights)} in the shuffled format {options['weights_format']}")
    units, depth = weights.shape
    if prod(data.shape) % depth:
        raise Refused(f"cannot cut the input {_of(data)} into rows of {depth}, as {_of(weights)} asks for")
    _bias(operation, units)
    if not options["keep_num_dims"]:
        return [(prod(data.shape) // depth, units)]
    if not data.shape or data.shape[-1] != depth:
        raise Refused(f"keeps the axes of {_of(data)}, whose last is not the {depth} of {_of(weights)}")
    return [(*data.shape[:-1], units)]


def _image(tensor: TensorInfo) -> Shape:
    if len(tensor.shape) != 4:
        raise Refused(f"has the input {_of(tensor)}; it must have 4 axes: batch, height, width, channels")
    return tensor.shape


def _filter(tensor: TensorInfo) -> Shape:
    if len(tensor.shape) != 4:
        raise Refused(f"has weights {_of(tensor)}; they must have 4 axes")
    return tensor.shape


def _bias(operation: Operation, channels: int) -> None:
    bias = operation.inputs[2] if len(operation.inputs) > 2 else None
    if bias is not None and prod(bias.shape) != channels:
        raise Refused(f"has the bias {_of(bias)} for {channels} outputs")


def _convolve(image: Shape, kernel: Shape, options: Mapping[str, Any]) -> Shape:
    stride, dilation = (options["stride_h"], options["stride_w"]), (options["dilation_h"], options["dilation_w"])
    _at_most(stride, _LARGEST_STEP, "a stride")
    _at_most(dilation, _LARGEST_STEP, "a dilation")
    return _slide(image, kernel, stride, dilation, options["padding"])


def _slide(image: Shape, window: Shape, stride: Shape, dilation: Shape, padding: int) -> Shape:
    """Rows and columns of the result."""
    _positive(stride, "a stride")
    _positive(dilation, "a dilation")
    if padding not in (_SAME, _VALID):
        raise Refused(f"has the padding {padding}; known are 0 (SAME) and 1 (VALID)")
    found = []
    for size, taps, step, spread in zip(image, window, stride, dilation, strict=True):
        extent = (taps - 1) * spread + 1
        count = -(-size // step) if padding == _SAME else -((extent - 1 - size) // step)
        if size + step >= _INT32 or extent >= _INT32 or (count - 1) * step + extent >= _INT32:
            raise Refused(f"has a window of {taps}, a stride of {step} and a dilation of {spread}: beyond 32 bits")
        if count < 1:
            dilated = f", dilated to {extent}," if spread > 1 else ""
            raise Refused(f"has a window of {taps}{dilated} over an image of {size}, without padding")
        found.append(count)
    return tuple(found)


def _positive(values: Shape, what: str) -> None:
    if min(values) < 1:
        raise Refused(f"has {what} of {values[0]}x{values[1]}; both must be at least 1")


def _at_most(values: Shape, limit: int, what: str) -> None:
    if max(values) > limit:
        raise Refused(f"has {what} of {values[0]}x{values[1]}; {limit} is the most that LiteRT takes")


def _of(tensor: TensorInfo) -> str:
    return f"{named(tensor)} {listed(tensor.shape)}"


RULES = {
    "AVERAGE_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
    "CONV_2D": _conv2d,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
}
