"""Data movement and concatenation: bytes are copied.

Only inputs of a uint8 concatenation with another scale are computed.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from stages.ir.graph import Activation, Concatenation, Move, Tensor
from stages.ir.relax_module import CONSTANT, LAYOUT
from stages.quantize.operator import Operator
from stages.quantize.patterns.operand import operand
from stages.quantize.resize import source_indices
from stages.quantize.tables import requantize_table
from stages.quantize.writer import GraphWriter


def reshape(operator: Operator, writer: GraphWriter) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the output is an alias of the input."""
    expr = operator.resolve(operator.result)
    while isinstance(expr, relax.Call) and expr.op.name in ("relax.reshape", "relax.squeeze", "relax.expand_dims"):
        expr = operator.resolve(expr.args[0])
    source = operator.data(expr)
    if not _logical_order(source) or not _logical_order(operator.outputs[0]):
        raise operator.error("reshapes a planar (NCHW) tensor")
    kind = {"SQUEEZE": "squeeze"}.get(operator.call.op, "reshape")
    writer.layer(Move(kind=kind), [source], operator.outputs[0], alias=True)


def layout(operator: Operator, writer: GraphWriter) -> None:
    """LAYOUT: a transform from the stage layout; an alias if it moves no bytes."""
    source, out = operator.inputs[0], operator.outputs[0]
    writer.layer(Move(kind="layout"), [source], out, alias=_logical_order(source) and _logical_order(out))


def constant(operator: Operator, writer: GraphWriter) -> None:
    """CONSTANT: a constant model output, copied in every run: its memory may be the caller's."""
    out = operator.outputs[0]
    values = operator.parameters(operator.result).values
    source = writer.constant_tensor(f"{out.name}/value", values, out.quant, "NHWC" if values.ndim == 4 else "")
    writer.layer(Move(kind="reshape"), [source], out)


def pad(operator: Operator, writer: GraphWriter) -> None:
    """PAD and PADV2: pad(x, amounts, value)."""
    x = wildcard()
    core = is_op("relax.nn.pad")(x)
    match = operator.expect(core, "pad(x) with a constant value")
    source, attributes = operator.data(match[x]), match[core].attrs
    widths = [int(width) for width in attributes.pad_width]
    value = float(attributes.pad_value)
    if str(attributes.pad_mode) != "constant":
        raise operator.error(f"pads in mode {attributes.pad_mode}; only a constant value is supported")
    params = {
        "before": operator.in_logical_order(widths[0::2], source),
        "after": operator.in_logical_order(widths[1::2], source),
        "value": value if source.dtype == "float32" else int(value),
    }
    writer.layer(Move(kind="pad", params=params), [source], operator.outputs[0])


def transpose(operator: Operator, writer: GraphWriter) -> None:
    """TRANSPOSE: permute_dims(x)."""
    x = wildcard()
    core = is_op("relax.permute_dims")(x)
    match = operator.expect(core, "permute_dims(x)")
    source = operator.data(match[x])
    axes = match[core].attrs.axes
    order = list(reversed(range(len(source.shape)))) if axes is None else [int(axis) for axis in axes]
    if source.layout == "NCHW" or operator.outputs[0].layout == "NCHW":
        raise operator.error("transposes a planar (NCHW) tensor")
    writer.layer(Move(kind="transpose", params={"permutation": order}), [source], operator.outputs[0])


def strided_slice(operator: Operator, writer: GraphWriter) -> None:
    """SLICE and STRIDED_SLICE: strided_slice(x), with dropped axes squeezed."""
    x = wildcard()
    core = is_op("relax.strided_slice")(x, wildcard(), wildcard(), wildcard(), wildcard())
    match = operator.expect(is_op("relax.squeeze")(core) | core, "strided_slice(x)")
    source = operator.data(match[x])
    axes, begins, ends, strides = (_integers(arg) for arg in match[core].args[1:5])
    rank = len(source.shape)
    begin, end, stride = [0] * rank, list(operator.in_physical_order(source.shape, source)), [1] * rank
    for position, axis in enumerate(axes):
        begin[axis], end[axis], stride[axis] = begins[position], max(ends[position], -1), strides[position]
    size = [len(range(*bounds)) for bounds in zip(begin, end, stride, strict=True)]
    _slice(operator, writer, source, operator.outputs[0], begin, stride, size)


def split(operator: Operator, writer: GraphWriter) -> None:
    """SPLIT and SPLIT_V: one slice for each output."""
    expr = operator.resolve(operator.result)
    if isinstance(expr, relax.TupleGetItem):
        expr = operator.resolve(expr.tuple_value)
    if not isinstance(expr, relax.Call) or expr.op.name != "relax.split":
        raise operator.error("is not split(x)")
    source = operator.data(expr.args[0])
    axis = int(expr.attrs.axis)
    begin = [0] * len(source.shape)
    for out in operator.outputs:
        size = list(operator.in_physical_order(out.shape, source))
        _slice(operator, writer, source, out, list(begin), [1] * len(begin), size)
        begin[axis] += size[axis]


def _slice(
    operator: Operator,
    writer: GraphWriter,
    source: Tensor,
    out: Tensor,
    begin: Sequence[int],
    stride: Sequence[int],
    size: Sequence[int],
) -> None:
    """Write a slice; begin, stride and size are in physical order, as in the body."""
    params: dict[str, Any] = {
        "begin": operator.in_logical_order(begin, source),
        "stride": operator.in_logical_order(stride, source),
        "size": operator.in_logical_order(size, source),
    }
    if prod(params["size"]) != out.elements:
        raise operator.error(f"has the size {params['size']}, but its output has {out.elements} elements")
    kind = {"SLICE": "slice", "STRIDED_SLICE": "strided_slice"}.get(operator.call.op, "split")
    writer.layer(Move(kind=kind, params=params), [source], out)


def resize_nearest_neighbor(operator: Operator, writer: GraphWriter) -> None:
    """RESIZE_NEAREST_NEIGHBOR, with the source row and column of each output row and column."""
    x = wildcard()
    core = is_op("relax.image.resize2d")(x, wildcard())
    match = operator.expect(core, "resize2d(x, size)")
    source, out = operator.data(match[x]), operator.outputs[0]
    mode = str(match[core].attrs.coordinate_transformation_mode)
    rows, columns = (
        source_indices(source.shape[axis], out.shape[axis], mode == "align_corners", mode == "half_pixel")
        for axis in (1, 2)
    )
    params = {"rows": rows, "columns": columns}
    writer.layer(Move(kind="resize_nearest_neighbor", params=params), [source], out)


def concatenation(operator: Operator, writer: GraphWriter) -> None:
    """CONCATENATION of equally quantized tensors; other uint8 inputs are rescaled by a table."""
    expr = operator.resolve(operator.result)
    while isinstance(expr, relax.Call) and expr.op.name in ("relax.quantize", "relax.clip"):
        expr = operator.resolve(expr.args[0])
    if not isinstance(expr, relax.Call) or expr.op.name != "relax.concat":
        raise operator.error("is not quantize(concat(dequantize(x), ...))")
    out = operator.outputs[0]
    parts = [
        operand(operator, writer, field, number) for number, field in enumerate(operator.resolve(expr.args[0]).fields)
    ]
    for number, part in enumerate(parts):
        if out.dtype != "float32" and part.quant != out.quant:
            if out.dtype != "uint8":
                hint = "LiteRT's int8 kernel demands equal quantization; quantize the model again."
                raise operator.error(f"joins tensors of different scales or zero points in {out.dtype}", hint)
            rescaled = writer.intermediate(part, f"on the scale of {out.name}", out.quant)
            table = requantize_table(operator.quantized(part), operator.quantized(out))
            writer.layer(Activation(function="requantize"), [part], rescaled, {"table": table})
            parts[number] = rescaled
    axis = operator.logical_axes([int(expr.attrs.axis)], out)[0]
    writer.layer(Concatenation(axis=axis), parts, out)


def space_to_depth(operator: Operator, writer: GraphWriter) -> None:
    """SPACE_TO_DEPTH: the pixels of each block become channels."""
    _blocks(operator, writer, "space_to_depth")


def depth_to_space(operator: Operator, writer: GraphWriter) -> None:
    """DEPTH_TO_SPACE: the inverse of SPACE_TO_DEPTH."""
    _blocks(operator, writer, "depth_to_space")


def _blocks(operator: Operator, writer: GraphWriter, kind: str) -> None:
    source, out, block = operator.inputs[0], operator.outputs[0], int(operator.options["blockSize"])
    if source.layout == "NCHW" or out.layout == "NCHW":
        raise operator.error("rearranges a planar (NCHW) tensor")
    writer.layer(Move(kind=kind, params={"block": [block, block]}), [source], out)


def _logical_order(tensor: Tensor) -> bool:
    """Whether the bytes are in logical order."""
    return tensor.lies_as("")


def _integers(expr: relax.Expr) -> list[int]:
    return [int(getattr(field, "value", field)) for field in expr.fields]


PATTERNS = {
    "RESHAPE": reshape,
    "SQUEEZE": reshape,
    "EXPAND_DIMS": reshape,
    LAYOUT: layout,
    CONSTANT: constant,
    "PAD": pad,
    "PADV2": pad,
    "TRANSPOSE": transpose,
    "SLICE": strided_slice,
    "STRIDED_SLICE": strided_slice,
    "SPLIT": split,
    "SPLIT_V": split,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest_neighbor,
    "CONCATENATION": concatenation,
    "SPACE_TO_DEPTH": space_to_depth,
    "DEPTH_TO_SPACE": depth_to_space,
}
