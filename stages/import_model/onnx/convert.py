"""Walks over the operators of an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from stages.base import StageError
from stages.import_model.checks.values import check_finite
from stages.import_model.onnx.custom import declared, quantization, translate_custom
from stages.import_model.onnx.fold import fold
from stages.import_model.onnx.gelu import fuse_gelus
from stages.import_model.onnx.load import graph_inputs, load
from stages.import_model.onnx.operators import FOLDED, MOVES, TRANSLATORS, translate
from stages.import_model.onnx.tensor_values import tensor_values
from stages.import_model.onnx.translation import MICROSOFT, Node, Translation
from stages.import_model.onnx.values import Held, Real, Stored, image_order, permuted, plain_order
from stages.ir.models.onnx_names import LOWERED, Traced
from stages.ir.models.tflite_writer import BuildError
from stages.ir.operators.declaration import MOVED
from stages.ir.operators.operation import Refused
from stages.support.messages import escape
from stages.support.messages.operator_error import OperatorError, called, together
from stages.support.messages.wording import several

_LOOP = (
    "Export the steps of the loop one after the other (torch.onnx.export does so of Python's loops), or the body as a "
    "model of its own that your code runs in a loop."
)
# What to do about operators that will not be known.
_INSTEAD = {
    "DynamicQuantizeLinear": "Dynamic quantization finds scales at run time. Take the float network, and in the recipe"
    " quantize: {mode: calibrate, data: ...}; or quantize_static.",
    "If": "Export each branch as a model of its own, between which your code chooses, or compute both and take Where.",
    "Loop": _LOOP,
    "Scan": _LOOP,
}
_OTHERS = "A plug-in of the project can say what it computes, under this name (docs/how-to/add_operator.md)."
_PLAIN_INPUTS = ("float32", "bool", "int32", "int64")
_BYTE_INPUTS = ("int8", "uint8")


@dataclass(frozen=True)
class Converted:
    """data: the TFLite file. names: its tensors in ONNX, by number. rules: facts of its operators, by number.

    original: the ONNX file that has these tensors: the one that was read, or as `load` changed it.
    """

    data: bytes
    original: bytes
    names: Mapping[int, Traced]
    rules: Mapping[int, Mapping[str, Any]]


def check_known(data: bytes, name: str, shapes: Mapping[str, Sequence[int]]) -> None:
    """Raises StageError as `convert` does, for what is corrupt and for operators that nobody knows."""
    model, _ = load(data, name, shapes)
    _check_known(Translation(model))


def convert(data: bytes, name: str, shapes: Mapping[str, Sequence[int]], layout: str) -> Converted:
    """The TFLite file of the ONNX file `data`.

    shapes: of inputs, by name; layout: `nchw` where inputs and outputs of four axes are as in ONNX, `nhwc` where they
    are images. Raises StageError for what is no ONNX file, is corrupt, or has operators that are not supported.
    """
    model, changed = load(data, name, shapes)
    original = model.SerializeToString() if changed else data
    t = Translation(model)
    for one in model.graph.initializer:
        t.bind(one.name, Stored(tensor_values(one, name)))
    for one in graph_inputs(model):
        _input(t, one, layout)
    _walk(t)
    for one in dict.fromkeys(t.outputs):
        _output(t, one, layout)
    if not t.builder.operators:
        raise StageError(f"{name} computes nothing: its outputs are its inputs, or constants")
    return Converted(t.builder.build(), original, t.names, t.rules)


def _input(t: Translation, one: onnx.ValueInfoProto, layout: str) -> None:
    kind = one.type.tensor_type
    dtype = str(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)) if kind.elem_type else ""
    shape = tuple(dim.dim_value for dim in kind.shape.dim)
    called = escape.quoted(one.name)
    if dtype not in (*_PLAIN_INPUTS, *_BYTE_INPUTS):
        found = onnx.TensorProto.DataType.Name(kind.elem_type).lower()
        known = ", ".join((*_PLAIN_INPUTS, "float16", *_BYTE_INPUTS))
        raise StageError(f"input {called} is {found}; {known} are supported")
    order = image_order(len(shape)) if layout == "nhwc" else plain_order(len(shape))
    if dtype in _PLAIN_INPUTS:
        made = t.builder.input(one.name, permuted(shape, order), dtype)
    else:
        quant = quantization(t, one.name)
        if quant is None:
            raise StageError(f"input {called} is {dtype}, and neither a DequantizeLinear nor a Cast reads it")
        scale, zero_point = quant
        given = zero_point + LOWERED if dtype == "uint8" else zero_point
        made = t.builder.input(one.name, permuted(shape, order), dtype, scale, given)
        if dtype == "uint8":
            t.names[made.index] = Traced(one.name, shape, order)
            made = t.builder.quantize(made, "int8", quant, name=f"{one.name}/int8")
    t.bind(one.name, Held.of(made, order))


def _walk(t: Translation) -> None:
    """Translates all operators; raises StageError naming those that cannot be, or that nobody knows."""
    _check_known(t)
    _constants(t)
    fuse_gelus(t)
    for node in t.nodes:
        if node.index in t.done:
            continue
        try:
            if fold(t, node):
                continue
            if node.op in FOLDED:
                raise Refused("reads a computed tensor; it is supported on constants")
            if (operator := declared(node)) is not None:
                translate_custom(t, node, operator)
            else:
                _check_finite(t, node)
                translate(t, node)
        except Refused as refused:
            raise _error(t, node, refused.what, refused.hint) from None
        except BuildError as error:
            raise _error(t, node, f"has no form in TFLite: {error}", "") from None
        except Exception as error:  # a fault of a translator: the message says of which operator
            error.add_note(f"in {called(node.index, node.op, node.name)}")
            raise


def _check_known(t: Translation) -> None:
    """Raises StageError naming all operators that nobody knows."""
    folded = _folded(t)
    known_here = {*TRANSLATORS, *MOVES, *FOLDED}
    apart = [node for node in t.nodes if node.op not in known_here and node.index not in folded]
    unknown = [node for node in apart if declared(node) is None]
    if unknown:
        known = f"docs/how-to/onnx.md lists the {len({*TRANSLATORS, *MOVES})} operators that are."
        raise together([_error(t, node, "is not supported", _instead(node, known)) for node in unknown])


def _check_finite(t: Translation, node: Node) -> None:
    """Refused for constants that are no numbers, but for bounds that are none and what a maximum is padded with."""
    for name in node.inputs if node.op not in ("Clip", "Pad") else ():
        value = t.values.get(name)
        if isinstance(value, Stored) and value.scale is None and value.values.dtype.kind == "f":
            check_finite(value.values, escape.quoted(name))


def _instead(node: Node, known: str) -> str:
    """What to do about an operator that is not known."""
    foreign = node.proto.domain not in ("", "ai.onnx", MICROSOFT)
    return _INSTEAD.get(node.op, _OTHERS if foreign else known)


def _folded(t: Translation) -> set[int]:
    """The operators that follow from constants and from shapes: whatever they are, they are computed now."""
    known, found = {one.name for one in t.model.graph.initializer}, set()
    for node in t.nodes:
        if node.op in ("Shape", "Size") or all(name in known for name in node.read):
            known.update(node.outputs)
            found.add(node.index)
    return found


def _constants(t: Translation) -> None:
    """Computes what follows from constants alone: what stands before it may be fused with an operator that reads it."""
    for node in t.nodes:
        if all(isinstance(t.values.get(name), Stored) for name in node.read):
            try:
                if fold(t, node):
                    t.done.add(node.index)
            except Refused as refused:
                raise _error(t, node, refused.what, refused.hint) from None


def _error(t: Translation, node: Node, what: str, hint: str) -> OperatorError:
    sides = (several([escape.quoted(name) for name in names if name], 4) for names in (node.inputs, node.outputs))
    return OperatorError(
        node.index, node.op.removeprefix(f"{MICROSOFT}."), node.name, what, " -> ".join(sides), hint=hint, named=True
    )


def _output(t: Translation, name: str, layout: str) -> None:
    value = t.values[name]
    if isinstance(value, Stored):
        _constant(t, name, value.real, layout)
        return
    x = t.real(name, value) if isinstance(value, Real) else value
    x = t.settled(x)
    order = image_order(len(x.shape)) if layout == "nhwc" else plain_order(len(x.shape))
    made = t.ordered(x, order)
    t.names.setdefault(made.tensor.index, Traced(name, made.base, made.order))
    if made.tensor.dtype == "int8" and _is_unsigned(t, name):
        quant = made.tensor.scale[0], made.tensor.zero_point[0] + LOWERED
        tensor = t.builder.quantize(made.tensor, "uint8", quant, name=f"{name}/uint8")
        t.names[tensor.index] = Traced(name, made.base, made.order)
        made = Held.of(tensor, made.order)
    t.builder.output(made.tensor)


def _constant(t: Translation, name: str, values: np.ndarray, layout: str) -> None:
    """An output that does not depend on the inputs."""
    if str(values.dtype) not in MOVED:
        raise StageError(f"output {escape.quoted(name)} of the model is a constant of {values.dtype}")
    order = image_order(values.ndim) if layout == "nhwc" else plain_order(values.ndim)
    made = t.builder.constant(name, np.ascontiguousarray(values.transpose(order)))
    t.names[made.index] = Traced(name, values.shape, order)
    t.builder.output(made)


def _is_unsigned(t: Translation, name: str) -> bool:
    declared = next(one for one in t.model.graph.output if one.name == name)
    return bool(declared.type.tensor_type.elem_type == onnx.TensorProto.UINT8)
