"""Convolutions, pools and FULLY_CONNECTED: shape rules, declarations, pool layers."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Literal

from stages.ir.arithmetic.sliding import extent, places
from stages.ir.layers import Array, LayerView, Shifted, Window
from stages.ir.layers.channels import ValueRange
from stages.ir.model_info import FileTensor, TensorInfo
from stages.ir.naming import named
from stages.ir.operators.declaration import WIDE, Legalization, LiteRT, Operator, Quantization, Tensors, Weights
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.ir.operators.products import Conv2D, DepthwiseConv2D, FullyConnected
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

_CONV = Table("Conv2DOptions", "padding:byte stride_w:int stride_h:int activation:byte dilation_w:one dilation_h:one")
_DEPTHWISE = Table(
    "DepthwiseConv2DOptions",
    "padding:byte stride_w:int stride_h:int depth_multiplier:int activation:byte dilation_w:one dilation_h:one",
)
_CONNECTED = Table(
    "FullyConnectedOptions", "activation:byte weights_format:byte keep_num_dims:bool asymmetric_quantize_inputs:bool"
)
_POOL = Table("Pool2DOptions", "padding:byte stride_w:int stride_h:int filter_w:int filter_h:int activation:byte")

_TRANSPOSED = Table("TransposeConvOptions", "padding:byte stride_w:int stride_h:int activation:byte")

_SAME, _VALID = 0, 1
# Limits of LiteRT's kernels.
_LARGEST_WINDOW = 2**16
_LARGEST_STEP = 2**15 - 1
_INT32 = 2**31


def _pool(operation: Operation) -> list[Shape]:
    options = operation.options(_POOL)
    batch, height, width, channels = _image(operation.input(0))
    window, stride = (options["filter_h"], options["filter_w"]), (options["stride_h"], options["stride_w"])
    _positive(window, "a window")
    _at_most(window, _LARGEST_WINDOW, "a window")
    rows, columns = _slide((height, width), window, stride, (1, 1), options["padding"])
    return [(batch, rows, columns, channels)]


def _conv2d(operation: Operation) -> list[Shape]:
    options = operation.options(_CONV)
    batch, height, width, channels = _image(operation.input(0))
    weights = operation.input(1)
    filters, *kernel, depth = _filter(weights)
    if channels % depth:
        raise Refused(
            f"has {channels} channels in {named(operation.input(0))}, "
            f"which is not a multiple of the {depth} in {_shown(weights)}"
        )
    groups = channels // depth
    if filters % groups:
        raise Refused(
            f"has {groups} groups of channels, but {_shown(weights)} has {filters} filters, which is not a multiple"
        )
    _bias(operation, filters)
    rows, columns = _convolve((height, width), tuple(kernel), options)
    return [(batch, rows, columns, filters)]


def _depthwise(operation: Operation) -> list[Shape]:
    options = operation.options(_DEPTHWISE)
    batch, height, width, channels = _image(operation.input(0))
    weights = operation.input(1)
    leading, *kernel, filters = _filter(weights)
    if leading != 1:
        raise Refused(f"has weights {_shown(weights)}; their first size must be 1")
    multiplier = options["depth_multiplier"]
    if filters != channels * multiplier:
        raise Refused(
            f"has {channels} channels in {named(operation.input(0))} and a depth multiplier of {multiplier}, "
            f"but {filters} filters in {_shown(weights)}"
        )
    _bias(operation, filters)
    rows, columns = _convolve((height, width), tuple(kernel), options)
    return [(batch, rows, columns, filters)]


def _transpose_conv(operation: Operation) -> list[Shape]:
    """Shape rule: the given output shape, whose convolution must have the input's shape."""
    options = operation.options(_TRANSPOSED)
    image = _image(operation.input(2))
    filters, *kernel, depth = _filter(operation.input(1))
    out = tuple(operation.integers(0, "the output's shape", 4))
    if depth != image[3] or out[0] != image[0] or out[3] != filters:
        weights = _shown(operation.input(1))
        raise Refused(f"has {weights} for {_shown(operation.input(2))} and an output {listed(out)}, which do not match")
    stride = options["stride_h"], options["stride_w"]
    _at_most(stride, _LARGEST_STEP, "a stride")
    if _slide(out[1:3], tuple(kernel), stride, (1, 1), options["padding"]) != image[1:3]:
        raise Refused(
            f"has an output {listed(out)}, whose convolution would not have the shape of {_shown(operation.input(2))}"
        )
    _bias(operation, filters, 3)
    return [out]


def _fully_connected(operation: Operation) -> list[Shape]:
    options = operation.options(_CONNECTED)
    data, weights = operation.input(0), operation.input(1)
    if len(weights.shape) != 2:
        raise Refused(f"has weights {_shown(weights)}; they must have 2 axes, units and depth")
    if options["weights_format"]:
        raise Refused(f"has weights {named(weights)} in the unsupported format {options['weights_format']} (shuffled)")
    units, depth = weights.shape
    if prod(data.shape) % depth:
        raise Refused(f"cannot split the input {_shown(data)} into rows of {depth}, the depth of {_shown(weights)}")
    _bias(operation, units)
    if not options["keep_num_dims"]:
        return [(prod(data.shape) // depth, units)]
    if not data.shape or data.shape[-1] != depth:
        raise Refused(
            f"keeps the axes of {_shown(data)}, whose last axis is not the depth {depth} of {_shown(weights)}"
        )
    return [(*data.shape[:-1], units)]


def _image(tensor: TensorInfo) -> Shape:
    if len(tensor.shape) != 4:
        raise Refused(f"has the input {_shown(tensor)}; it must have 4 axes: batch, height, width, channels")
    return tensor.shape


def _filter(tensor: TensorInfo) -> Shape:
    if len(tensor.shape) != 4:
        raise Refused(f"has weights {_shown(tensor)}; they must have 4 axes")
    return tensor.shape


def _bias(operation: Operation, channels: int, position: int = 2) -> None:
    bias = operation.inputs[position] if len(operation.inputs) > position else None
    if bias is not None and prod(bias.shape) != channels:
        raise Refused(f"has the bias {_shown(bias)}, which does not fit {channels} outputs")


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
        raise Refused(f"has the padding {padding}; supported: 0 (SAME) and 1 (VALID)")
    sizes = []
    for size, taps, step, spread in zip(image, window, stride, dilation, strict=True):
        reach, count = extent(taps, spread), places(size, taps, step, spread, same=padding == _SAME)
        if size + step >= _INT32 or reach >= _INT32 or (count - 1) * step + reach >= _INT32:
            raise Refused(f"has a window of {taps}, a stride of {step} and a dilation of {spread}: beyond 32 bits")
        if count < 1:
            dilated = f", dilated to {reach}," if spread > 1 else ""
            raise Refused(f"has a window of {taps}{dilated} over a smaller image of {size}, without padding")
        sizes.append(count)
    return tuple(sizes)


def _positive(values: Shape, label: str) -> None:
    if min(values) < 1:
        raise Refused(f"has {label} of {values[0]}x{values[1]}; both must be at least 1")


def _at_most(values: Shape, limit: int, label: str) -> None:
    if max(values) > limit:
        raise Refused(f"has {label} of {values[0]}x{values[1]}; LiteRT's maximum is {limit}")


def _shown(tensor: TensorInfo) -> str:
    return f"{named(tensor)} {listed(tensor.shape)}"


class Pool2D(Window):
    """AVERAGE_POOL_2D and MAX_POOL_2D. Padding does not count.

    Averages divide by the number of elements inside the image, halves away from zero.
    """

    uniform: ClassVar[bool] = True
    op: Literal["avg_pool2d", "max_pool2d"]

    @property
    def is_max(self) -> bool:
        """True if it computes maxima, no averages."""
        return self.op == "max_pool2d"

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """None if shifts differ, or an average may be a half, which rounds away from 0."""
        if output != inputs[0] or (output and not self.is_max and self._has_halves(view)):
            return None
        return super().shifted(view, inputs, output)

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """Range of the input, clamped."""
        (x,) = inputs
        return ValueRange(np.clip(x.least, self.act_min, self.act_max), np.clip(x.most, self.act_min, self.act_max))

    def _has_halves(self, view: LayerView) -> bool:
        """Whether a window has an even number of elements inside the image."""
        image, out = view.inputs[0].shape[1:3], view.outputs[0].shape[1:3]
        inside = (
            sum(0 <= place * self.stride[axis] - self.padding[axis] + tap < image[axis] for tap in range(taps))
            for axis, taps in enumerate(self.kernel)
            for place in range(out[axis])
        )
        return any(count % 2 == 0 for count in inside)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the pooled image."""
        (x,) = inputs
        if self.is_max:
            pooled = np.max(self.taps(view, x, int(np.iinfo(x.dtype).min)), axis=0)
        else:
            total, count = (np.sum(self.taps(view, part, 0), axis=0) for part in (x, np.ones_like(x)))
            pooled = np.where(total > 0, (total + count // 2) // count, -((-total + count // 2) // count))
        return np.clip(pooled, self.act_min, self.act_max).astype(x.dtype)


def _conv2d_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec = model.spec
    shape = (spec.out_channels or 1, *spec.kernel, x.shape[-1] // spec.groups)
    weights, bias, options = model.weighted(shape, 0, prod(shape[1:]), spec.per_channel)
    options |= {"stride": spec.stride, "dilation": spec.dilation, "padding": spec.padding}
    return model.builder.conv2d(x, weights, bias, **options)


def _depthwise_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec = model.spec
    shape = (1, *spec.kernel, x.shape[-1] * spec.depth_multiplier)
    weights, bias, options = model.weighted(shape, 3, prod(spec.kernel), spec.per_channel)
    options |= {"stride": spec.stride, "dilation": spec.dilation, "padding": spec.padding}
    return model.builder.depthwise_conv2d(x, weights, bias, **options)


def _fully_connected_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec, channels = model.spec, x.shape[-1]
    # TFLite's converter gives these weights one scale; per channel only when asked for.
    per_channel = spec.per_channel and "per_channel" in spec.model_fields_set
    weights, bias, options = model.weighted((spec.out_channels or 1, channels), 0, channels, per_channel)
    return model.builder.fully_connected(x, weights, bias, **options)


def _transpose_conv_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    """Output of stride times the input's size with SAME; with VALID all that windows cover."""
    spec, (batch, height, width, channels) = model.spec, x.shape
    shape = (spec.out_channels or 1, *spec.kernel, channels)
    taps = prod(-(-size // step) for size, step in zip(spec.kernel, spec.stride, strict=True))
    weights, bias, options = model.weighted(shape, 0, channels * taps, spec.per_channel)
    span = tuple((size - 1) * step for size, step in zip((height, width), spec.stride, strict=True))
    more = spec.stride if spec.padding == "same" else spec.kernel
    out = np.array([batch, span[0] + more[0], span[1] + more[1], shape[0]], np.int32)
    return model.builder.transpose_conv(
        x, weights, bias, shape=out, stride=spec.stride, padding=spec.padding, **options
    )


def _pool_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec = model.spec
    pools = {"avg_pool2d": model.builder.avg_pool2d, "max_pool2d": model.builder.max_pool2d}
    return pools[spec.op](x, spec.kernel, spec.stride, padding=spec.padding, activation=spec.activation, name=spec.op)


_WINDOW = frozenset({"kernel", "stride", "padding", "activation"})
_WEIGHTS = frozenset({"weights", "bias", "activation", "per_channel", "output"})


OPERATORS = (
    Operator(
        "CONV_2D",
        _conv2d,
        Tensors((3, 3), types=WIDE, layout="transposing"),  # LiteRT 2.3 requires a bias
        table=_CONV,
        weights=Weights(
            own=(1, 2),
            channels=0,
            narrow={"int8": ("int4",), "float32": ("int4",)},
            macs=lambda weights: prod(weights[1:]),  # OHWI; I is per group
        ),
        legalization=Legalization((Conv2D,)),
        litert=LiteRT(version=3),
        model=SingleOperatorModel(
            _conv2d_model, _WINDOW | _WEIGHTS | {"dilation", "out_channels", "groups"}, ("out_channels",)
        ),
        limits="4 axes; a bias is required; groups divide channels and filters",
    ),
    Operator(
        "DEPTHWISE_CONV_2D",
        _depthwise,
        Tensors((2, 3), types=WIDE, layout="transposing"),
        table=_DEPTHWISE,
        weights=Weights(
            own=(1, 2),
            channels=3,
            narrow={"int8": ("int4",)},
            macs=lambda weights: prod(weights[1:3]),  # 1HWC
        ),
        legalization=Legalization((DepthwiseConv2D,)),
        litert=LiteRT(version=3),
        model=SingleOperatorModel(_depthwise_model, _WINDOW | _WEIGHTS | {"dilation", "depth_multiplier"}),
        limits="4 axes",
    ),
    Operator(
        "FULLY_CONNECTED",
        _fully_connected,
        Tensors((2, 3), types=WIDE),
        table=_CONNECTED,
        weights=Weights(
            own=(1, 2),
            channels=0,
            narrow={"int8": ("int4", "int2"), "float32": ("int4", "int2")},
            macs=lambda weights: prod(weights[1:]),  # units, depth
        ),
        legalization=Legalization((FullyConnected,)),
        litert=LiteRT(version=4),
        model=SingleOperatorModel(_fully_connected_model, _WEIGHTS | {"out_channels"}, ("out_channels",)),
        limits="weights in the usual order, not shuffled",
    ),
    Operator(
        "TRANSPOSE_CONV",
        _transpose_conv,
        Tensors((3, 4), types=WIDE, indices=(0,)),
        table=_TRANSPOSED,
        weights=Weights(own=(1, 3), operands=(2, 1, 3), channels=0),
        legalization=Legalization((Conv2D,)),
        litert=LiteRT(version=2),
        model=SingleOperatorModel(
            _transpose_conv_model, _WEIGHTS | {"kernel", "stride", "padding", "out_channels"}, ("out_channels",)
        ),
        limits="4 axes; computed as convolutions of stride 1, one for each phase",
    ),
    *(
        Operator(
            name,
            _pool,
            Tensors(types=WIDE, layout="transposing"),
            table=_POOL,
            quantization=Quantization(alike=True),
            legalization=Legalization((Pool2D,)),
            model=SingleOperatorModel(_pool_model, _WINDOW),
            limits="4 axes",
        )
        for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D")
    ),
)
