"""Comparisons, logic, Cast and Where of computed tensors, and QLinearWhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from stages.import_model.onnx.operators.elementwise import laid_alike, operands, part_of
from stages.import_model.onnx.operators.qlinear import destined, operand
from stages.import_model.onnx.operators.tables import requantized, requantized_values
from stages.import_model.onnx.translation import MICROSOFT, Node, Out, Translation, axis_in
from stages.import_model.onnx.values import Held, Real, Stored, plain_order
from stages.ir.models.onnx_names import LOWERED
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

Translator = Callable[[Translation, Node], None]
Part = Held | Stored
_CAST_TO = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.BOOL: "bool",
    onnx.TensorProto.INT32: "int32",
    onnx.TensorProto.INT64: "int64",
}


def _truth(t: Translation, op: str, tensors: Sequence[Tensor], name: str) -> Tensor:
    """Appends an operator that gives bool."""
    made = t.builder.tensor(name, np.broadcast_shapes(*(tensor.shape for tensor in tensors)), "bool")
    t.builder.operator(op, tensors, [made])
    return made


def _pair(op: str) -> Translator:
    """A comparison, or logic of two."""

    def translate(t: Translation, node: Node) -> None:
        tensors, order = operands(t, node)
        t.bind(node.outputs[0], Held.of(_truth(t, op, tensors, node.outputs[0]), order))

    return translate


def logical_not(t: Translation, node: Node) -> None:
    x = t.held(node, 0)
    made = _truth(t, "LOGICAL_NOT", [x.tensor], node.outputs[0])
    t.bind(node.outputs[0], Held(made, x.base, x.shape, x.order))


def cast(t: Translation, node: Node) -> None:
    """Between float32, bool, int32 and int64, and from bytes."""
    value, to, lowered = t.value(node, 0), node.attributes["to"], 0
    if isinstance(value, Held) and value.tensor.scale:
        lowered = LOWERED if t.integer_type(node.inputs[0]) == np.uint8 else 0
        if to == onnx.TensorProto.FLOAT and (*value.tensor.scale, *value.tensor.zero_point) == (1.0, -lowered):
            t.bind(node.outputs[0], Real(value))
            return
        x = _as_integers(t, node, value, lowered)
        lowered = lowered if to == onnx.TensorProto.BOOL else 0
    else:
        x = t.held(node, 0)
    if to not in _CAST_TO or x.tensor.dtype not in _CAST_TO.values():
        wanted, known = onnx.TensorProto.DataType.Name(to).lower(), ", ".join(_CAST_TO.values())
        raise Refused(f"makes {wanted} of a computed tensor of {x.tensor.dtype}; {known} are supported")
    name, dtype = node.outputs[0], _CAST_TO[to]
    if dtype == x.tensor.dtype:
        t.bind(name, x)
        return
    if dtype == "bool":
        zero = t.builder.constant(f"{name}/zero", np.array(-lowered, x.tensor.dtype))
        made = _truth(t, "NOT_EQUAL", [x.tensor, zero], name)
    else:
        made = t.builder.tensor(name, x.tensor.shape, dtype)
        t.builder.operator("CAST", [x.tensor], [made])
    t.bind(name, Held(made, x.base, x.shape, x.order))


def _as_integers(t: Translation, node: Node, value: Held, lowered: int) -> Held:
    """Bytes as ONNX has them, whatever they stand for, in the type of the Cast; the tensor has them less `lowered`.

    For truth values they stay so, in int32.
    """
    name, dtype = node.outputs[0], _CAST_TO.get(node.attributes["to"], "int32")
    dtype, truth = ("int32", True) if dtype == "bool" else (dtype, False)
    made = t.builder.tensor(f"{name}/integers", value.tensor.shape, dtype)
    t.builder.operator("CAST", [value.tensor], [made])
    if lowered and not truth:
        offset = t.builder.constant(f"{name}/offset", np.array(lowered, dtype))
        made = t.builder.emit("ADD", [made, offset], made.shape, None, f"{name}/raised", "AddOptions", {})
    return Held(made, value.base, value.shape, value.order)


def where(t: Translation, node: Node) -> None:
    """Between integers each operand is brought to the scale of the result."""
    values = [t.value(node, at) for at in (1, 2)]
    out = t.destination(node, integers=True)
    if out is not None and out.activation == "none":
        parts = [_integers(value) for value in values]
        if None not in parts:
            _select(t, node, [part for part in parts if part is not None], out)
            return
    tensors, order = laid_alike(t, [_condition(t, node), *(part_of(t, node, at) for at in (1, 2))], node.outputs[0])
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    made = t.builder.tensor(node.outputs[0], shape, tensors[1].dtype)
    t.builder.operator("SELECT_V2", tensors, [made])
    t.bind(node.outputs[0], Held.of(made, order))


def _condition(t: Translation, node: Node) -> Part:
    value = t.value(node, 0)
    if isinstance(value, Stored):
        return Stored(value.values)
    return t.real(node.inputs[0], value)


def _integers(value: Held | Real | Stored) -> Part | None:
    """The integers that real numbers are of; None where they are of none, or of several scales."""
    if isinstance(value, Real):
        return value.held
    if isinstance(value, Stored) and value.scale is not None and value.scale.size == 1:
        return value if value.values.dtype in (np.int8, np.uint8) else None
    return None


def _select(t: Translation, node: Node, parts: Sequence[Part], out: Out) -> None:
    assert out.quant is not None
    brought = [_brought(t, part, out.quant, f"{out.name}/part{at}") for at, part in enumerate(parts)]
    tensors, order = laid_alike(t, [_condition(t, node), *brought], out.name)
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    made = t.builder.tensor(out.name, shape, "int8", *out.quant)
    t.builder.operator("SELECT_V2", tensors, [made])
    t.finish(out, Held.of(made, order))


def _brought(t: Translation, part: Part, quant: tuple[float, int], name: str) -> Part:
    """Integers on the scale `quant`, of int8."""
    if isinstance(part, Held):
        return requantized(t, part, quant, name)
    scale, zero_point = np.float32(quant[0]), np.int8(quant[1])
    return Stored(requantized_values(part.real, quant), scale.reshape(1), zero_point.reshape(1))


def one_hot(t: Translation, node: Node) -> None:
    """OneHot: the second of two values where a place along a new axis is the index, which may count from the end."""
    x, depth = t.plain(t.held(node, 0)), t.integers(node, 1, "the depth")[0]
    off, on = t.stored(node, 2, "its values").reshape(-1)
    axis, name = axis_in(int(node.attributes.get("axis", -1)), len(x.shape) + 1), node.outputs[0]
    if depth < 1:
        raise Refused(f"has the depth {depth}; it must be positive")
    indices = t.builder.reshape(x.tensor, (*x.shape[:axis], 1, *x.shape[axis:]), name=f"{name}/indices")
    line = np.arange(depth).reshape([-1 if at == axis else 1 for at in range(len(x.shape) + 1)])
    hits = [
        _truth(t, "EQUAL", [indices, t.builder.constant(f"{name}/{what}", places.astype(x.tensor.dtype))], name)
        for what, places in (("places", line), ("from_the_end", line - depth))
    ]
    values = [t.builder.constant(f"{name}/{what}", np.array(value)) for what, value in (("on", on), ("off", off))]
    chosen = _truth(t, "LOGICAL_OR", hits, f"{name}/hits")
    made = t.builder.tensor(name, chosen.shape, values[0].dtype)
    t.builder.operator("SELECT_V2", [chosen, *values], [made])
    t.bind(name, Held.of(made, plain_order(len(chosen.shape))))


def triangle(t: Translation, node: Node) -> None:
    """Trilu: what lies on the other side of a diagonal of the last two axes is 0."""
    x = t.settled(t.held(node, 0))
    if len(x.shape) < 2:
        raise Refused(f"reads {listed(x.shape)}; there are two axes")
    above = int(t.integers(node, 1, "the diagonal")[0]) if node.has(1) else 0
    keep = (np.triu if node.attributes.get("upper", 1) else np.tril)(np.ones(x.shape[-2:], bool), above)
    tensors, order = laid_alike(t, [Stored(keep), x, Stored(np.zeros(1, np.float32))], node.outputs[0])
    made = t.builder.tensor(node.outputs[0], tensors[1].shape, "float32")
    t.builder.operator("SELECT_V2", tensors, [made])
    t.bind(node.outputs[0], Held.of(made, order))


def qlinear_where(t: Translation, node: Node) -> None:
    """QLinearWhere(condition, x, scale, zero, y, scale, zero, scale, zero)."""
    parts = [operand(t, node, at) for at in (1, 4)]
    for part in parts:
        if isinstance(part, Stored) and part.scale is not None and part.scale.size != 1:
            raise Refused(f"has the scales {listed(part.scale)} for one operand; one is supported")
    _select(t, node, parts, destined(t, node, 7))


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
    "Trilu": triangle,
    "Where": where,
    "Xor": _pair("NOT_EQUAL"),
    f"{MICROSOFT}.QLinearWhere": qlinear_where,
}
