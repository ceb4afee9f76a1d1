"""Convert an ONNX graph operator by operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from stages.base import StageError
from stages.import_model.checks.values import check_finite
from stages.import_model.onnx.custom import declared, quantization, translate_custom
from stages.import_model.onnx.fold import OF_SHAPES, fold, shape_of
from stages.import_model.onnx.gelu import fuse_gelus
from stages.import_model.onnx.load import graph_inputs, load
from stages.import_model.onnx.operators import FOLDED, MOVES, TRANSLATORS, translate
from stages.import_model.onnx.operators.recurrent import INITIAL_STATE
from stages.import_model.onnx.operators.recurrent import TRANSLATORS as RECURRENT
from stages.import_model.onnx.states import declare_state, keep
from stages.import_model.onnx.tensor_values import tensor_values
from stages.import_model.onnx.translation import MICROSOFT, Node, Translation
from stages.import_model.onnx.values import Constant, Dequantized, Order, TensorView, image_order, permuted, plain_order
from stages.ir.models.onnx_names import LOWERED, Traced
from stages.ir.models.tflite_writer import BuildError, Tensor
from stages.ir.operators.declaration import MOVED
from stages.ir.operators.operation import Refused
from stages.support.messages import escape
from stages.support.messages.operator_error import OperatorError, combined_error, operator_label
from stages.support.messages.wording import several

_LOOP = (
    "Unroll the loop (torch.onnx.export unrolls Python loops), or export its body as a separate model and run it "
    "in a loop in your code."
)
# Hints for operators that will stay unsupported.
_HINTS = {
    "DynamicQuantizeLinear": "Dynamic quantization finds scales at run time. Use the float network with"
    " quantize: {mode: calibrate, data: ...} in the recipe, or quantize_static.",
    "If": "Export each branch as a separate model and choose in your code, or compute both and use Where.",
    "Loop": _LOOP,
    "Scan": _LOOP,
}
_PLUGIN_HINT = "A plug-in can define it under this name (docs/how-to/add_operator.md)."
_PLAIN_INPUTS = ("float32", "bool", "int32", "int64")
_BYTE_INPUTS = ("int8", "uint8")


@dataclass(frozen=True)
class Converted:
    """A converted network.

    data: the TFLite file
    original: the ONNX file that `names` refers to, as read or as changed by `load`
    names: ONNX values of the TFLite tensors, by number
    rules: arithmetic of all TFLite operators, by number
    notes: sentences about states that the caller has to carry from run to run
    """

    data: bytes
    original: bytes
    names: Mapping[int, Traced]
    rules: Mapping[int, Mapping[str, Any]]
    notes: tuple[str, ...] = ()


def check_known(
    data: bytes,
    name: str,
    shapes: Mapping[str, Sequence[int]],
    constants: Mapping[str, Any] | None = None,
    states: Mapping[str, str] | None = None,
) -> None:
    """Raise StageError for errors that `convert` would find without converting.

    They are a corrupt file, unknown operators, wrong constants and wrong states.
    """
    model, _ = load(data, name, shapes, constants, states)
    _check_known(Translation(model))


def convert(
    data: bytes,
    name: str,
    shapes: Mapping[str, Sequence[int]],
    layout: str,
    constants: Mapping[str, Any] | None = None,
    states: Mapping[str, str] | None = None,
) -> Converted:
    """Return the TFLite file of the ONNX file `data`.

    shapes: of inputs, by name. layout: `nchw` if inputs and outputs with four axes stay as in ONNX, `nhwc` if they are
    images. constants: values of inputs, by name. states: inputs that the network keeps, by the outputs that write them.
    Raises StageError for a file that is not ONNX, is corrupt, or has unsupported operators.
    """
    model, changed = load(data, name, shapes, constants, states)
    original = model.SerializeToString() if changed else data
    t = Translation(model)
    for entry in model.graph.initializer:
        t.bind(entry.name, Constant(tensor_values(entry, name)))
    writers = {state: output for output, state in (states or {}).items()}
    variables = {}
    for entry in graph_inputs(model):
        if entry.name in writers:
            variables[entry.name] = _state(t, entry)
        else:
            _input(t, entry, layout)
    _walk(t)
    for entry in dict.fromkeys(t.outputs):
        if entry not in (states or {}):
            _output(t, entry, layout)
    for state, (variable, order) in variables.items():
        keep(t, name, writers[state], state, variable, order)
    if not t.builder.operators:
        raise StageError(f"{name} computes nothing: its outputs are inputs or constants")
    rules = {number: t.rules.get(number, {}) for number in range(t.builder.operators)}
    return Converted(t.builder.build(), original, t.names, rules, _carried_states(t, {*variables}, {*(states or {})}))


def _carried_states(t: Translation, states: set[str], outputs: set[str]) -> tuple[str, ...]:
    """Return a note for each initial state of a recurrent operator that an output could write.

    states, outputs: names of inputs and outputs that are connected.
    """
    shapes = {
        entry.name: [dim.dim_value for dim in entry.type.tensor_type.shape.dim] for entry in graph_inputs(t.model)
    }
    notes = []
    for node in t.nodes:
        initial = node.inputs[INITIAL_STATE : INITIAL_STATE + 2] if node.op in RECURRENT else ()
        for name in dict.fromkeys(source for value in initial if value for source in _sources(t, value)):
            ends = [end for end in t.outputs if end not in outputs and [*shape_of(t.values[end])] == shapes[name]]
            if name not in states and ends:
                written, read = escape.quoted(ends[-1]), escape.quoted(name)
                label = operator_label(node.index, node.op, node.name)
                notes.append(
                    f"input {read} is the initial state of {label} in each run; if output {written} is the next value, "
                    "list both in `states` of the recipe's model to keep the state in the firmware"
                )
    return tuple(dict.fromkeys(notes))


def _state(t: Translation, value_info: onnx.ValueInfoProto) -> tuple[Tensor, Order]:
    """Declare the state of an input; return it and the order of its axes."""
    tensor_type = value_info.type.tensor_type
    dtype = str(onnx.helper.tensor_dtype_to_np_dtype(tensor_type.elem_type))
    if dtype not in _PLAIN_INPUTS:
        supported = ", ".join(_PLAIN_INPUTS)
        raise StageError(f"state {escape.quoted(value_info.name)} is {dtype}; {supported} are supported")
    shape = tuple(dim.dim_value for dim in tensor_type.shape.dim)
    order = image_order(len(shape))
    return declare_state(t, value_info.name, shape, order, dtype), order


def _input(t: Translation, value_info: onnx.ValueInfoProto, layout: str) -> None:
    tensor_type = value_info.type.tensor_type
    dtype = str(onnx.helper.tensor_dtype_to_np_dtype(tensor_type.elem_type)) if tensor_type.elem_type else ""
    shape = tuple(dim.dim_value for dim in tensor_type.shape.dim)
    quoted_name = escape.quoted(value_info.name)
    if dtype not in (*_PLAIN_INPUTS, *_BYTE_INPUTS):
        type_name = onnx.TensorProto.DataType.Name(tensor_type.elem_type).lower()
        supported = ", ".join((*_PLAIN_INPUTS, "float16", *_BYTE_INPUTS))
        raise StageError(f"input {quoted_name} is {type_name}; {supported} are supported")
    order = image_order(len(shape)) if layout == "nhwc" else plain_order(len(shape))
    if dtype in _PLAIN_INPUTS:
        tensor = t.builder.input(value_info.name, permuted(shape, order), dtype)
    else:
        quant = quantization(t, value_info.name)
        if quant is None:
            raise StageError(f"input {quoted_name} is {dtype}, and neither a DequantizeLinear nor a Cast reads it")
        scale, zero_point = quant
        file_zero_point = zero_point + LOWERED if dtype == "uint8" else zero_point
        tensor = t.builder.input(value_info.name, permuted(shape, order), dtype, scale, file_zero_point)
        if dtype == "uint8":
            t.names[tensor.index] = Traced(value_info.name, shape, order)
            tensor = t.builder.quantize(tensor, "int8", quant, name=f"{value_info.name}/int8")
    t.bind(value_info.name, TensorView.of(tensor, order))


def _walk(t: Translation) -> None:
    """Translate all operators. Raises StageError with those that are unknown or unsupported."""
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
                raise Refused("reads a computed tensor; it is supported for constants only")
            if (operator := declared(node)) is not None:
                translate_custom(t, node, operator)
            else:
                _check_finite(t, node)
                translate(t, node)
        except Refused as refused:
            raise _error(t, node, refused.what, refused.hint) from None
        except BuildError as error:
            raise _error(t, node, f"has no form in TFLite: {error}", "") from None
        except Exception as error:  # a bug in a translator: name the operator
            error.add_note(f"in {operator_label(node.index, node.op, node.name)}")
            raise


def _check_known(t: Translation) -> None:
    """Raise StageError that lists all unknown operators."""
    folded = _folded(t)
    built_in = {*TRANSLATORS, *MOVES, *FOLDED}
    foreign = [node for node in t.nodes if node.op not in built_in and node.index not in folded]
    unknown = [node for node in foreign if declared(node) is None]
    if unknown:
        reference = f"docs/how-to/onnx.md lists the {len({*TRANSLATORS, *MOVES})} supported operators."
        raise combined_error([_error(t, node, "is not supported", _hint(t, node, reference)) for node in unknown])


def _check_finite(t: Translation, node: Node) -> None:
    """Raise Refused for non-finite constants, except bounds of Clip and values of Pad."""
    for name in node.inputs if node.op not in ("Clip", "Pad") else ():
        value = t.values.get(name)
        if isinstance(value, Constant) and value.scale is None and value.values.dtype.kind == "f":
            check_finite(value.values, escape.quoted(name))


def _hint(t: Translation, node: Node, known: str) -> str:
    """Return a hint for an unknown operator."""
    if node.op == "If":
        inputs = several([escape.quoted(name) for name in _sources(t, node.inputs[0])], 4)
        return f"{_HINTS['If']} Or fix {inputs} with `constants` of the recipe's model." if inputs else _HINTS["If"]
    foreign = node.proto.domain not in ("", "ai.onnx", MICROSOFT)
    return _HINTS.get(node.op, _PLUGIN_HINT if foreign else known)


def _sources(t: Translation, name: str) -> list[str]:
    """Return the model's inputs on which a value depends."""
    makers = {result: node for node in t.nodes for result in node.outputs}
    pending, seen = [name], {name}
    while pending:
        maker = makers.get(pending.pop())
        new = {source for source in (maker.read if maker else ()) if source not in seen}
        pending += new
        seen |= new
    return [entry.name for entry in graph_inputs(t.model) if entry.name in seen]


def _folded(t: Translation) -> set[int]:
    """Return the operators that follow from constants and shapes, whether supported or not."""
    known, folded = {constant.name for constant in t.model.graph.initializer}, set()
    for node in t.nodes:
        if node.op in OF_SHAPES or all(name in known for name in node.read):
            known.update(node.outputs)
            folded.add(node.index)
    return folded


def _constants(t: Translation) -> None:
    """Evaluate operators on constants first, so that operators before them can be fused."""
    for node in t.nodes:
        if all(isinstance(t.values.get(name), Constant) for name in node.read):
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
    if isinstance(value, Constant):
        _constant(t, name, value.real_values, layout)
        return
    x = t.dequantized(name, value) if isinstance(value, Dequantized) else value
    x = t.materialized(x)
    order = image_order(len(x.shape)) if layout == "nhwc" else plain_order(len(x.shape))
    result = t.reordered(x, order)
    t.names.setdefault(result.tensor.index, Traced(name, result.base, result.order))
    if result.tensor.dtype == "int8" and _is_unsigned(t, name):
        quant = result.tensor.scale[0], result.tensor.zero_point[0] + LOWERED
        tensor = t.builder.quantize(result.tensor, "uint8", quant, name=f"{name}/uint8")
        t.names[tensor.index] = Traced(name, result.base, result.order)
        result = TensorView.of(tensor, result.order)
    t.builder.output(result.tensor)


def _constant(t: Translation, name: str, values: np.ndarray, layout: str) -> None:
    """Append an output that does not depend on the inputs."""
    if str(values.dtype) not in MOVED:
        raise StageError(f"output {escape.quoted(name)} of the model is an unsupported constant of {values.dtype}")
    order = image_order(values.ndim) if layout == "nhwc" else plain_order(values.ndim)
    tensor = t.builder.constant(name, np.ascontiguousarray(values.transpose(order)))
    t.names[tensor.index] = Traced(name, values.shape, order)
    t.builder.output(tensor)


def _is_unsigned(t: Translation, name: str) -> bool:
    declared_output = next(output for output in t.model.graph.output if output.name == name)
    return bool(declared_output.type.tensor_type.elem_type == onnx.TensorProto.UINT8)
