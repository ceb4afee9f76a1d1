"""Calls of CMSIS-NN (Include/arm_nnfunctions.h, versions of 2022 to 2026) for a layer.

The wrapper of each operator is called, which picks the kernel. It gets as much scratch as it asks for.
Constants that an application prepares once, such as sums of weights, are not counted. Weights of up to 4 bits go to
the functions on int4 (`_s4`).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from stages.backends.kernels.eight_bit import SUFFIX
from stages.delivery.bench.baselines.call import Call
from stages.delivery.bench.baselines.cmsis_nn_arguments import context, dims, tile
from stages.delivery.bench.baselines.cmsis_nn_recurrent import lstm, svdf
from stages.delivery.bench.networks import Network
from stages.ir.arithmetic.multipliers import quantize_multiplier
from stages.ir.graph import LayerView
from stages.ir.models.tflite_reader import read
from stages.ir.operators.arithmetic import Add
from stages.ir.packed import narrowed

_SOFTMAX_INTEGER_BITS = 5
_WEIGHTED = "&context, &params, &quant, &input_dims, x0, &filter_dims, weights, &bias_dims, bias, &output_dims, output"


def calls(network: Network) -> list[Call]:
    """Return the calls for a one-operator network, the newest API first; [] if unsupported."""
    if network.spec.op == "transpose_conv" and network.spec.dtype == "int8" and network.spec.weight_bits > 4:
        return [_transpose_conv(network)]
    if len(network.graph.layers) != 1:
        return []
    view = network.graph.view(network.graph.layers[0])
    types = {tensor.dtype for tensor in (*view.inputs, *view.outputs)}
    table = {"int8": _CALLS, "int16": _CALLS_16}.get(types.pop(), {}) if len(types) == 1 else {}
    candidates = (make(network, view) for make in table.get(view.layer.kind, ()))
    return [call for call in candidates if call is not None]


def _conv2d(network: Network, view: LayerView) -> Call:
    op, function = view.op, f"arm_convolve_wrapper_{_weighted_suffix(network, view)}"
    _, height, width, depth = view.constant("weights").shape
    return Call(
        _weighted(network, view),
        [
            dims("filter_dims", op.out_channels, height, width, depth),
            *_window("cmsis_nn_conv_params", op),
            *_io(view),
            dims("bias_dims", 1, 1, 1, op.out_channels),
            "const cmsis_nn_per_channel_quant_params quant = {(int32_t *)multiplier, (int32_t *)shift};",
            *context(f"{function}_get_buffer_size(&params, &input_dims, &filter_dims, &output_dims)"),
            # Before version 7 the bias on int16 is an array; a pointer to void goes with both.
            "const struct {const void *data; _Bool is_int32;} wide_bias = {bias, 0};",
            "const void *const bias_data = &wide_bias;",
        ],
        f"status = {function}({_WEIGHTED})".replace(" bias,", " bias_data," if function.endswith("s16") else " bias,"),
    )


def _depthwise(network: Network, view: LayerView) -> Call:
    op, function = view.op, f"arm_depthwise_conv_wrapper_{_weighted_suffix(network, view)}"
    height, width = op.kernel
    return Call(
        _weighted(network, view),
        [
            dims("filter_dims", 1, height, width, op.out_channels),
            *_window("cmsis_nn_dw_conv_params", op, f".ch_mult = {op.depth_multiplier}, "),
            *_io(view),
            dims("bias_dims", 1, 1, 1, op.out_channels),
            "const cmsis_nn_per_channel_quant_params quant = {(int32_t *)multiplier, (int32_t *)shift};",
            *context(f"{function}_get_buffer_size(&params, &input_dims, &filter_dims, &output_dims)"),
        ],
        f"status = {function}({_WEIGHTED})",
    )


def _fully_connected(network: Network, view: LayerView) -> Call | None:
    """Version 7: scales per channel, and prepared sums of weights."""
    if _weighted_suffix(network, view) != "s8":
        return None
    op, zero, scales = view.op, -view.op.input_zero_point, int(not _one_scale(view))
    return Call(
        _weighted(network, view),
        [
            *_matrix(op),
            f"const cmsis_nn_quant_params quant = {{(int32_t *)multiplier, (int32_t *)shift, {scales}}};",
            *context("arm_fully_connected_s8_get_buffer_size(&filter_dims)"),
            "if (context.size > 0)",
            f"    status = arm_vector_sum_s8(scratch, {op.depth}, {op.units}, weights, {zero}, 0, bias);",
        ],
        f"status |= arm_fully_connected_wrapper_s8({_WEIGHTED})",
    )


def _fully_connected_of_one_scale(network: Network, view: LayerView) -> Call | None:
    """One scale for all channels, nothing to prepare: before version 6, and on int16 and int4."""
    if not _one_scale(view):
        return None
    suffix = _weighted_suffix(network, view)
    return Call(
        _weighted(network, view),
        [
            *_matrix(view.op),
            "const cmsis_nn_per_tensor_quant_params quant = {*multiplier, *shift};",
            *context("0" if suffix == "s4" else f"arm_fully_connected_{suffix}_get_buffer_size(&filter_dims)"),
        ],
        f"status = arm_fully_connected_{suffix}({_WEIGHTED})",
    )


def _one_scale(view: LayerView) -> bool:
    return all(np.unique(values).size == 1 for values in _scales(view).values())


def _scales(view: LayerView) -> dict[str, Any]:
    """Return multipliers and shifts, which a layer with real multipliers does not have."""
    if not view.has("real"):
        return {role: view.constant(role) for role in ("multiplier", "shift")}
    return _fixed(view.constant("real"))


def _fixed(reals: Iterable[float]) -> dict[str, Any]:
    pairs = np.array([quantize_multiplier(float(real)) for real in reals], np.int32)
    return {"multiplier": pairs[:, 0], "shift": pairs[:, 1]}


def _matrix(op: Any) -> list[str]:
    offsets = f".input_offset = {-op.input_zero_point}, .output_offset = {op.output_zero_point}"
    return [
        dims("input_dims", op.batch, 1, 1, op.depth),
        dims("filter_dims", op.depth, 1, 1, op.units),
        dims("bias_dims", 1, 1, 1, op.units),
        dims("output_dims", op.batch, 1, 1, op.units),
        f"const cmsis_nn_fc_params params = {{{offsets}, .filter_offset = 0, {_activation(op)}}};",
    ]


def _add(network: Network, view: LayerView) -> Call | None:
    op = view.op
    if not isinstance(op, Add):
        return None
    a, b = (
        f"{-zero}, {multiplier}, {shift}"
        for zero, multiplier, shift in zip(op.zero_points, op.multipliers, op.shifts, strict=True)
    )
    arguments = (
        f"{a}, {b}, {op.left_shift}, {{output}}, {op.output_zero_point}, {op.output_multiplier}, "
        f"{op.output_shift}, {op.act_min}, {op.act_max}"
    )
    return _elementwise(f"arm_elementwise_add_{_suffix(view)}", arguments, network, view)


def _mul(network: Network, view: LayerView) -> Call | None:
    op = view.op
    a, b = (-zero for zero in op.zero_points)
    arguments = (
        f"{a}, {b}, {{output}}, {op.output_zero_point}, {op.output_multiplier}, {op.output_shift}, "
        f"{op.act_min}, {op.act_max}"
    )
    return _elementwise(f"arm_elementwise_mul_{_suffix(view)}", arguments, network, view)


def _elementwise(function: str, arguments: str, network: Network, view: LayerView) -> Call | None:
    """Return one call for all elements, or one per pixel for a second operand by channel."""
    x, other = view.inputs
    channels = x.shape[-1]
    data = _inputs(network, view)
    if other.elements == x.elements:
        return Call(data, (), f"status = {function}(x0, x1, {arguments.format(output='output')}, {x.elements})")
    if other.elements != channels or other.shape[-1] != channels:
        return None
    loop_body = f"{function}(x0 + at, x1, {arguments.format(output='output + at')}, {channels})"
    return Call(data, (), f"for (int at = 0; at < {x.elements}; at += {channels}) status |= {loop_body}")


def _extremum(network: Network, view: LayerView) -> Call | None:
    if any(len(tensor.shape) > 4 for tensor in view.inputs):
        return None
    shapes = [(*[1] * (4 - len(tensor.shape)), *tensor.shape) for tensor in (*view.inputs, *view.outputs)]
    names = ("dims0", "dims1", "output_dims")
    return Call(
        _inputs(network, view),
        [dims(name, *shape) for name, shape in zip(names, shapes, strict=True)],
        f"status = arm_{view.op.op}_s8(0, x0, &dims0, x1, &dims1, output, &output_dims)",
    )


def _pool(network: Network, view: LayerView) -> Call:
    op = view.op
    suffix = _suffix(view)
    function = f"arm_max_pool_{suffix}" if op.is_max else f"arm_avgpool_{suffix}"
    height, width = op.kernel
    _, _, columns, channels = view.outputs[0].shape
    size = "0" if op.is_max else f"arm_avgpool_{suffix}_get_buffer_size({columns}, {channels})"
    offsets = f".stride = {tile(op.stride)}, .padding = {tile(op.padding[:2])}"
    return Call(
        _inputs(network, view),
        [
            dims("filter_dims", 1, height, width, 1),
            f"const cmsis_nn_pool_params params = {{{offsets}, {_activation(op)}}};",
            *_io(view),
            *context(size),
        ],
        f"status = {function}(&context, &params, &input_dims, x0, &filter_dims, &output_dims, output)",
    )


def _softmax(network: Network, view: LayerView) -> Call:
    """Parameters of TFLite's reference: input scale with 5 integer bits, smallest difference."""
    x = view.inputs[0]
    multiplier, shift = quantize_multiplier(network.spec.beta * x.scale * (1 << (31 - _SOFTMAX_INTEGER_BITS)))
    least = ((1 << _SOFTMAX_INTEGER_BITS) - 1) * 2.0 ** (31 - _SOFTMAX_INTEGER_BITS - shift)
    size = x.shape[-1]
    return Call(
        _inputs(network, view),
        (),
        f"arm_softmax_s8(x0, {x.elements // size}, {size}, {multiplier}, {shift}, {-int(least)}, output)",
    )


def _softmax16(network: Network, view: LayerView) -> Call:
    op, x = view.op, view.inputs[0]
    tables = {name: view.constant(role).astype(np.int16) for name, role in (("e", "exp"), ("r", "reciprocal"))}
    size = x.shape[-1]
    return Call(
        _inputs(network, view) | tables,
        ["const cmsis_nn_softmax_lut_s16 tables = {e, r};"],
        f"status = arm_softmax_s16(x0, {x.elements // size}, {size}, {op.multiplier}, {op.shift}, &tables, output)",
    )


def _pad(network: Network, view: LayerView) -> Call | None:
    x, params = view.inputs[0], view.op.params
    if len(x.shape) != 4:
        return None
    sizes = [dims("size", *x.shape), dims("before", *params["before"]), dims("after", *params["after"])]
    return Call(
        _inputs(network, view), sizes, f"status = arm_pad_s8(x0, output, {params['value']}, &size, &before, &after)"
    )


def _transpose(network: Network, view: LayerView) -> Call:
    x, order = view.inputs[0], view.op.params["permutation"]
    rank = len(order)
    filled = [(*tensor.shape, *[1] * (4 - rank)) for tensor in (x, view.outputs[0])]
    return Call(
        _inputs(network, view),
        [
            dims("input_dims", *filled[0]),
            dims("output_dims", *filled[1]),
            f"static const uint32_t order[] = {{{', '.join(map(str, order))}}};",
            f"const cmsis_nn_transpose_params params = {{{rank}, order}};",
        ],
        "status = arm_transpose_s8(x0, output, &input_dims, &output_dims, &params)",
    )


def _transpose_conv(network: Network) -> Call:
    """From the file's operator, since Firmline computes it as several layers."""
    info = read(network.model)
    (operator,), tensors = info.operators, info.tensors
    _, weights, x, *biases = (tensors[index] for index in operator.inputs)
    out = tensors[operator.outputs[0]]
    filters, height, width, depth = weights.shape
    scales = np.broadcast_to(weights.scale, filters)
    fixed = _fixed(float(x.scale[0]) * float(scale) / float(out.scale[0]) for scale in scales)
    windows = zip(out.shape[1:3], x.shape[1:3], (height, width), network.spec.stride, strict=True)
    total = [max((small - 1) * step + taps - large, 0) for large, small, taps, step in windows]
    tiles = {
        "stride": network.spec.stride,
        "padding": [size // 2 for size in total],
        "padding_offsets": [size % 2 for size in total],
        "dilation": (1, 1),
    }
    fields = [
        f".input_offset = {-int(x.zero_point[0])}, .output_offset = {int(out.zero_point[0])}",
        *(f".{name} = {tile(tuple(pair))}" for name, pair in tiles.items()),
        ".activation = {-128, 127}",
    ]
    constants = {
        "x0": network.inputs[network.graph.inputs[0]],
        "weights": weights.values(),
        "bias": biases[0].values() if biases else np.zeros(filters, np.int32),
        **{role: np.ascontiguousarray(values) for role, values in fixed.items()},
    }
    sizes = (
        "arm_transpose_conv_s8_get_buffer_size(&params, &input_dims, &filter_dims, &output_dims)",
        "arm_transpose_conv_s8_get_reverse_conv_buffer_size(&params, &input_dims, &filter_dims)",
    )
    return Call(
        constants,
        [
            dims("filter_dims", filters, height, width, depth),
            dims("input_dims", *x.shape),
            dims("output_dims", *out.shape),
            dims("bias_dims", 1, 1, 1, filters),
            f"const cmsis_nn_transpose_conv_params params = {{{', '.join(fields)}}};",
            "const cmsis_nn_per_channel_quant_params quant = {(int32_t *)multiplier, (int32_t *)shift};",
            *context(f"({sizes[0]} + 15) / 16 * 16"),
            f"const cmsis_nn_context reverse = {{scratch + context.size, {sizes[1]}}};",
            "if (context.size + reverse.size > SCRATCH)",
            "    return NO_ROOM;",
        ],
        f"status = arm_transpose_conv_wrapper_s8({_WEIGHTED.replace('&context,', '&context, &reverse,')})",
    )


def _batch_matmul(network: Network, view: LayerView) -> Call | None:
    """The function takes the second operand transposed; that copy is prepared, and not counted."""
    op, suffix = view.op, _suffix(view)
    x0, x1 = _inputs(network, view).values()
    if max(x0.ndim, x1.ndim) > 4:
        return None
    x0, x1 = (x0.swapaxes(-1, -2) if op.adj_x else x0), (x1 if op.adj_y else x1.swapaxes(-1, -2))
    out = view.outputs[0].shape
    shapes = {"dims0": x0.shape, "dims1": x1.shape, "output_dims": out}
    offsets = f"{-op.zero_points[0]}, {-op.zero_points[1]}, {op.output_zero_point}, {{{op.act_min}, {op.act_max}}}"
    return Call(
        {"x0": np.ascontiguousarray(x0), "x1": np.ascontiguousarray(x1)},
        [
            *(dims(name, *[1] * (4 - len(shape)), *shape) for name, shape in shapes.items()),
            f"const cmsis_nn_bmm_params params = {{0, 1, {{{offsets}}}}};",
            f"const cmsis_nn_per_tensor_quant_params quant = {{{op.multiplier}, {op.shift}}};",
            *context(str(4 * out[-1])),
        ],
        f"status = arm_batch_matmul_{suffix}(&context, &params, &quant, &dims0, x0, &dims1, x1, &output_dims, output)",
    )


_CALLS: dict[str, tuple[Any, ...]] = {
    "conv2d": (_conv2d,),
    "depthwise_conv2d": (_depthwise,),
    "fully_connected": (_fully_connected, _fully_connected_of_one_scale),
    "add": (_add,),
    "mul": (_mul,),
    "max_pool2d": (_pool,),
    "avg_pool2d": (_pool,),
    "softmax": (_softmax,),
    "pad": (_pad,),
    "transpose": (_transpose,),
    "maximum": (_extremum,),
    "minimum": (_extremum,),
    "batch_matmul": (_batch_matmul,),
    "svdf": (svdf,),
    "lstm": (lstm,),
}
_CALLS_16: dict[str, tuple[Any, ...]] = {
    "conv2d": (_conv2d,),
    "fully_connected": (_fully_connected_of_one_scale,),
    "batch_matmul": (_batch_matmul,),
    "depthwise_conv2d": (_depthwise,),
    "add": (_add,),
    "mul": (_mul,),
    "max_pool2d": (_pool,),
    "avg_pool2d": (_pool,),
    "softmax": (_softmax16,),
}


def _suffix(view: LayerView) -> str:
    return SUFFIX[view.outputs[0].dtype]


def _weighted_suffix(network: Network, view: LayerView) -> str:
    return "s4" if network.spec.weight_bits <= 4 else _suffix(view)


def _inputs(network: Network, view: LayerView) -> dict[str, Any]:
    arrays = {
        name: view.arrays[name] if view.tensors[name].constant else network.inputs[name] for name in view.layer.inputs
    }
    return {f"x{number}": arrays[name] for number, name in enumerate(view.layer.inputs)}


def _weighted(network: Network, view: LayerView) -> dict[str, Any]:
    constants = {role: view.constant(role) for role in ("weights", "bias")} | _scales(view)
    if network.spec.weight_bits <= 4:
        constants["weights"] = narrowed(constants["weights"].reshape(-1), 4)
    return _inputs(network, view) | {role: np.ascontiguousarray(values) for role, values in constants.items()}


def _io(view: LayerView) -> list[str]:
    return [dims("input_dims", *view.inputs[0].shape), dims("output_dims", *view.outputs[0].shape)]


def _activation(op: Any) -> str:
    return f".activation = {{{op.act_min}, {op.act_max}}}"


def _window(kind: str, op: Any, extra_fields: str = "") -> list[str]:
    tiles = f".stride = {tile(op.stride)}, .padding = {tile(op.padding[:2])}, .dilation = {tile(op.dilation)}"
    offsets = f".input_offset = {-op.input_zero_point}, .output_offset = {op.output_zero_point}"
    return [f"const {kind} params = {{{extra_fields}{offsets}, {tiles}, {_activation(op)}}};"]
