"""Comparisons, logic, Cast, Where, OneHot and Trilu of computed tensors."""

from collections.abc import Sequence

import numpy as np
import onnx

from stages.import_model.onnx.operators.elementwise import broadcast_together, operands, real_operand
from stages.import_model.onnx.operators.qlinear import declared_output, operand
from stages.import_model.onnx.operators.tables import requantized, requantized_values
from stages.import_model.onnx.translation import MICROSOFT, Node, Out, Translation, Translator, axis_in
from stages.import_model.onnx.values import Constant, Dequantized, TensorView, plain_order
from stages.ir.models.onnx_names import LOWERED
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

Operand = TensorView | Constant
_CAST_TO = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.BOOL: "bool",
    onnx.TensorProto.INT32: "int32",
    onnx.TensorProto.INT64: "int64",
}


def _truth(t: Translation, op: str, tensors: Sequence[Tensor], name: str) -> Tensor:
    """Append an operator with a bool result."""
    result = t.builder.tensor(name, np.broadcast_shapes(*(tensor.shape for tensor in tensors)), "bool")
    t.builder.operator(op, tensors, [result])
    return result


def _pair(op: str) -> Translator:
    """Return the translator of a comparison or of binary logic."""

    def translate(t: Translation, node: Node) -> None:
        tensors, order = operands(t, node)
        t.bind(node.outputs[0], TensorView.of(_truth(t, op, tensors, node.outputs[0]), order))

    return translate


def logical_not(t: Translation, node: Node) -> None:
    """Translate Not."""
    x = t.computed(node, 0)
    result = _truth(t, "LOGICAL_NOT", [x.tensor], node.outputs[0])
    t.bind(node.outputs[0], TensorView(result, x.base, x.shape, x.order))


def cast(t: Translation, node: Node) -> None:
    """Translate Cast between float32, bool, int32 and int64, and from 8-bit integers."""
    value, to, lowered = t.value(node, 0), node.attributes["to"], 0
    if isinstance(value, TensorView) and value.tensor.scale:
        lowered = LOWERED if t.integer_type(node.inputs[0]) == np.uint8 else 0
        if to == onnx.TensorProto.FLOAT and (*value.tensor.scale, *value.tensor.zero_point) == (1.0, -lowered):
            t.bind(node.outputs[0], Dequantized(value))
            return
        x = _as_integers(t, node, value, lowered)
        lowered = lowered if to == onnx.TensorProto.BOOL else 0
    else:
        x = t.computed(node, 0)
    if to not in _CAST_TO or x.tensor.dtype not in _CAST_TO.values():
        target, supported = onnx.TensorProto.DataType.Name(to).lower(), ", ".join(_CAST_TO.values())
        raise Refused(f"makes {target} of a computed tensor of {x.tensor.dtype}; {supported} are supported")
    name, dtype = node.outputs[0], _CAST_TO[to]
    if dtype == x.tensor.dtype:
        t.bind(name, x)
        return
    if dtype == "bool":
        zero = t.builder.constant(f"{name}/zero", np.array(-lowered, x.tensor.dtype))
        result = _truth(t, "NOT_EQUAL", [x.tensor, zero], name)
    else:
        result = t.builder.tensor(name, x.tensor.shape, dtype)
        t.builder.operator("CAST", [x.tensor], [result])
    t.bind(name, TensorView(result, x.base, x.shape, x.order))


def _as_integers(t: Translation, node: Node, value: TensorView, lowered: int) -> TensorView:
    """Return 8-bit integers in the type of the Cast. The tensor stores them less `lowered`.

    For a Cast to bool they stay lowered, in int32.
    """
    name, dtype = node.outputs[0], _CAST_TO.get(node.attributes["to"], "int32")
    dtype, truth = ("int32", True) if dtype == "bool" else (dtype, False)
    result = t.builder.tensor(f"{name}/integers", value.tensor.shape, dtype)
    t.builder.operator("CAST", [value.tensor], [result])
    if lowered and not truth:
        offset = t.builder.constant(f"{name}/offset", np.array(lowered, dtype))
        result = t.builder.emit("ADD", [result, offset], result.shape, None, f"{name}/raised", "AddOptions", {})
    return TensorView(result, value.base, value.shape, value.order)


def where(t: Translation, node: Node) -> None:
    """Translate Where; between integers each operand is rescaled to the result's scale."""
    values = [t.value(node, at) for at in (1, 2)]
    out = t.destination(node, integers=True)
    if out is not None and out.activation == "none":
        parts = [_integers(value) for value in values]
        if None not in parts:
            _select(t, node, [part for part in parts if part is not None], out)
            return
    tensors, order = broadcast_together(
        t, [_condition(t, node), *(real_operand(t, node, at) for at in (1, 2))], node.outputs[0]
    )
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    result = t.builder.tensor(node.outputs[0], shape, tensors[1].dtype)
    t.builder.operator("SELECT_V2", tensors, [result])
    t.bind(node.outputs[0], TensorView.of(result, order))


def _condition(t: Translation, node: Node) -> Operand:
    value = t.value(node, 0)
    if isinstance(value, Constant):
        return Constant(value.values)
    return t.dequantized(node.inputs[0], value)


def _integers(value: TensorView | Dequantized | Constant) -> Operand | None:
    """Return the integers behind real numbers; None if there are none, or several scales."""
    if isinstance(value, Dequantized):
        return value.integers
    if isinstance(value, Constant) and value.scale is not None and value.scale.size == 1:
        return value if value.values.dtype in (np.int8, np.uint8) else None
    return None


def _select(t: Translation, node: Node, parts: Sequence[Operand], out: Out) -> None:
    assert out.quant is not None
    rescaled = [_rescaled(t, part, out.quant, f"{out.name}/part{at}") for at, part in enumerate(parts)]
    tensors, order = broadcast_together(t, [_condition(t, node), *rescaled], out.name)
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    result = t.builder.tensor(out.name, shape, "int8", *out.quant)
    t.builder.operator("SELECT_V2", tensors, [result])
    t.finish(out, TensorView.of(result, order))


def _rescaled(t: Translation, part: Operand, quant: tuple[float, int], name: str) -> Operand:
    """Return int8 values with the scale `quant`."""
    if isinstance(part, TensorView):
        return requantized(t, part, quant, name)
    scale, zero_point = np.float32(quant[0]), np.int8(quant[1])
    return Constant(requantized_values(part.real_values, quant), scale.reshape(1), zero_point.reshape(1))


def one_hot(t: Translation, node: Node) -> None:
    """Translate OneHot: `on` where the position along a new axis equals the index, else `off`."""
    x, depth = t.plain(t.computed(node, 0)), t.constant_integers(node, 1, "the depth")[0]
    off, on = t.constant(node, 2, "its values").reshape(-1)
    axis, name = axis_in(int(node.attributes.get("axis", -1)), len(x.shape) + 1), node.outputs[0]
    if depth < 1:
        raise Refused(f"has the depth {depth}; it must be positive")
    indices = t.builder.reshape(x.tensor, (*x.shape[:axis], 1, *x.shape[axis:]), name=f"{name}/indices")
    positions = np.arange(depth).reshape([-1 if at == axis else 1 for at in range(len(x.shape) + 1)])
    hits = [
        _truth(
            t, "EQUAL", [indices, t.builder.constant(f"{name}/{label}", position_values.astype(x.tensor.dtype))], name
        )
        for label, position_values in (("places", positions), ("from_the_end", positions - depth))
    ]
    values = [t.builder.constant(f"{name}/{label}", np.array(value)) for label, value in (("on", on), ("off", off))]
    selector = _truth(t, "LOGICAL_OR", hits, f"{name}/hits")
    result = t.builder.tensor(name, selector.shape, values[0].dtype)
    t.builder.operator("SELECT_V2", [selector, *values], [result])
    t.bind(name, TensorView.of(result, plain_order(len(selector.shape))))


def trilu(t: Translation, node: Node) -> None:
    """Translate Trilu: 0 on the other side of a diagonal of the last two axes."""
    x = t.materialized(t.computed(node, 0))
    if len(x.shape) < 2:
        raise Refused(f"reads {listed(x.shape)}; at least two axes are needed")
    above = int(t.constant_integers(node, 1, "the diagonal")[0]) if node.has(1) else 0
    mask = (np.triu if node.attributes.get("upper", 1) else np.tril)(np.ones(x.shape[-2:], bool), above)
    tensors, order = broadcast_together(t, [Constant(mask), x, Constant(np.zeros(1, np.float32))], node.outputs[0])
    result = t.builder.tensor(node.outputs[0], tensors[1].shape, "float32")
    t.builder.operator("SELECT_V2", tensors, [result])
    t.bind(node.outputs[0], TensorView.of(result, order))


def qlinear_where(t: Translation, node: Node) -> None:
    """Translate QLinearWhere(condition, x, scale, zero, y, scale, zero, scale, zero)."""
    parts = [operand(t, node, at) for at in (1, 4)]
    for part in parts:
        if isinstance(part, Constant) and part.scale is not None and part.scale.size != 1:
            raise Refused(f"has the scales {listed(part.scale)} for one operand; one is supported")
    _select(t, node, parts, declared_output(t, node, 7))


TRANSLATORS: dict[str, Translator] = {
    "And": _pair("LOGICAL_AND"),
    "Cast": cast,
    "Equal": _pair("EQUAL"),
    "Greater": _pair("GREATER"),
    "GreaterOrEqual": _pair("GREATER_EQUAL"),
    "Less": _pair("LESS"),
    "LessOrEqual": _pair("LESS_EQUAL"),
    "Not": logical_not,
    "OneHot": one_hot,
    "Or": _pair("LOGICAL_OR"),
    "Trilu": trilu,
    "Where": where,
    "Xor": _pair("NOT_EQUAL"),
    f"{MICROSOFT}.QLinearWhere": qlinear_where,
}
