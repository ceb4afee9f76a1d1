"""Walks over the operators of an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import numpy_helper

from stages.base import StageError
from stages.import_model.onnx.fold import fold
from stages.import_model.onnx.load import graph_inputs, load
from stages.import_model.onnx.operators import FOLDED, MOVES, SCALED, TRANSLATORS, translate
from stages.import_model.onnx.translation import MICROSOFT, Node, Translation
from stages.import_model.onnx.values import Held, Real, Stored, image_order, permuted, plain_order
from stages.messages import escape
from stages.messages.operator_error import OperatorError, together
from stages.messages.wording import all_known, several
from stages.models.onnx_names import LOWERED, Traced
from stages.models.tflite_writer import BuildError
from stages.operators.operation import Refused

# What to do about operators that will not be known.
_INSTEAD = {
    "DynamicQuantizeLinear": "Dynamic quantization finds scales at run time. Take the float network, and in the recipe"
    " quantize: {mode: calibrate, data: ...}; or quantize_static.",
    f"{MICROSOFT}.QLinearSoftmax": "Its tables are ONNX Runtime's own. Write the network with quant_format=QDQ, or"
    " leave Softmax out of op_types_to_quantize.",
}
_TYPES = {"float32": "float32", "int8": "int8", "uint8": "uint8"}


@dataclass(frozen=True)
class Converted:
    """data: the TFLite file. names: its tensors in ONNX, by number. rules: facts of its operators, by number."""

    data: bytes
    names: Mapping[int, Traced]
    rules: Mapping[int, Mapping[str, Any]]


def convert(data: bytes, name: str, shapes: Mapping[str, Sequence[int]], layout: str) -> Converted:
    """The TFLite file of the ONNX file `data`.

    shapes: of inputs, by name; layout: `nchw` where inputs and outputs of four axes are as in ONNX, `nhwc` where they
    are images. Raises StageError for what is no ONNX file, is corrupt, or has operators that are not supported.
    """
    model = load(data, name, shapes)
    t = Translation(model)
    for one in model.graph.initializer:
        t.bind(one.name, Stored(numpy_helper.to_array(one)))
    for one in graph_inputs(model):
        _input(t, one, layout)
    _walk(t)
    for one in dict.fromkeys(t.outputs):
        _output(t, one, layout)
    if not t.builder.operators:
        raise StageError(f"{name} computes nothing: its outputs are its inputs")
    return Converted(t.builder.build(), t.names, t.rules)


def _input(t: Translation, one: onnx.ValueInfoProto, layout: str) -> None:
    kind = one.type.tensor_type
    dtype = _TYPES.get(str(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)) if kind.elem_type else "")
    shape = tuple(dim.dim_value for dim in kind.shape.dim)
    called = escape.quoted(one.name)
    if dtype is None:
        found = onnx.TensorProto.DataType.Name(kind.elem_type).lower()
        raise StageError(f"input {called} is {found}; float32, int8 and uint8 are supported")
    order = image_order(len(shape)) if layout == "nhwc" else plain_order(len(shape))
    if dtype == "float32":
        made = t.builder.input(one.name, permuted(shape, order), dtype)
    else:
        quant = _quantization(t, one.name)
        if quant is None:
            raise StageError(f"input {called} is {dtype}, and nothing that reads it says its scale")
        scale, zero_point = quant
        given = zero_point + LOWERED if dtype == "uint8" else zero_point
        made = t.builder.input(one.name, permuted(shape, order), dtype, scale, given)
        if dtype == "uint8":
            t.names[made.index] = Traced(one.name, shape, order)
            made = t.builder.quantize(made, "int8", quant, name=f"{one.name}/int8")
    t.bind(one.name, Held.of(made, order))


def _quantization(t: Translation, name: str) -> tuple[float, int] | None:
    """Scale and zero point (of int8) of integers, from what reads them."""
    for node in t.readers[name]:
        places = [at for at, given in enumerate(node.inputs) if given == name]
        if node.op == "DequantizeLinear" and places[0] == 0:
            return t.parameters(node, 1, 2)
        if node.op in SCALED and (at := places[0]) in SCALED[node.op]:
            return t.parameters(node, at + 1, at + 2)
        if node.op in MOVES and (found := _quantization(t, node.outputs[0])):
            return found
    return None


def _walk(t: Translation) -> None:
    """Translates all operators; raises StageError naming those that cannot be, or that nobody knows."""
    folded = _folded(t)
    unknown = [node for node in t.nodes if node.op not in (*TRANSLATORS, *MOVES, *FOLDED) and node.index not in folded]
    if unknown:
        known = all_known(sorted((*TRANSLATORS, *MOVES)))
        raise together([_error(t, node, "is not supported", _INSTEAD.get(node.op, known)) for node in unknown])
    _constants(t)
    for node in t.nodes:
        if node.index in t.done:
            continue
        try:
            if fold(t, node):
                continue
            if node.op not in TRANSLATORS and node.op not in MOVES:
                raise Refused("reads a computed tensor; it is supported on constants")
            translate(t, node)
        except Refused as refused:
            raise _error(t, node, refused.what, refused.hint) from None
        except BuildError as error:
            raise _error(t, node, f"has no form in TFLite: {error}", "") from None


def _folded(t: Translation) -> set[int]:
    """The operators that follow from constants and from shapes: whatever they are, they are computed now."""
    known, found = {name for name, value in t.values.items() if isinstance(value, Stored)}, set()
    for node in t.nodes:
        if node.op in ("Shape", "Size") or all(name in known for name in node.inputs if name):
            known.update(node.outputs)
            found.add(node.index)
    return found


def _constants(t: Translation) -> None:
    """Computes what follows from constants alone: what stands before it may be fused with an operator that reads it."""
    for node in t.nodes:
        if all(isinstance(t.values.get(name), Stored) for name in node.inputs if name):
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
        raise StageError(f"output {escape.quoted(name)} of the model is a constant: there is nothing to run")
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


def _is_unsigned(t: Translation, name: str) -> bool:
    declared = next(one for one in t.model.graph.output if one.name == name)
    return bool(declared.type.tensor_type.elem_type == onnx.TensorProto.UINT8)
