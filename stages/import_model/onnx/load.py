"""An ONNX file as a graph that can be translated: parsed, checked, functions in line, inputs of fixed shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from stages.base import StageError
from stages.ir.models.onnx_external import external_tensors
from stages.ir.models.onnx_parse import parsed
from stages.ir.models.other_files import FILE
from stages.support.messages import escape
from stages.support.messages.wording import several

if TYPE_CHECKING:
    import onnx

_OLDEST = 7  # before it, operators broadcast by attributes
_YAML_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~")
_UNTOLD = "Shapes are fixed when the model is imported."


def load(data: bytes, name: str, shapes: Mapping[str, Sequence[int]]) -> tuple[onnx.ModelProto, bool]:
    """Return the model in `data` (weights included) with the inputs' `shapes`, and whether it has other operators.

    It has no local functions, no float16, and no If whose condition is known. name: of the file, for messages. Raises
    StageError for what is no ONNX file, or unsound.
    """
    import onnx

    from stages.import_model.onnx.branches import put_in_line
    from stages.import_model.onnx.float16 import widen
    from stages.import_model.onnx.local_functions import inlined
    from stages.import_model.onnx.unregistered import for_checker, refuse_unregistered

    model = parsed(data, name)
    _check_opset(model, name)
    _check_external(model, name)
    try:
        changed = _forget_sizes_below_1(model) | bool(model.functions)
        model = inlined(model)
        changed |= widen(model, name)
        model = _with_shapes(model, name)
        onnx.checker.check_model(for_checker(model))
    except (onnx.checker.ValidationError, RuntimeError) as error:
        refuse_unregistered(model)
        said = re.sub(r"^/\S+:\d+: \w+: (Assertion `.*?` failed: )?", "", " ".join(str(error).split()))
        reason = escape.line(said)[:300]
        raise StageError(f"{name} is a corrupt ONNX file: {reason}", hint="Export it again.", at=FILE) from None
    _fix_shapes(model, name, shapes)
    changed |= put_in_line(model)
    return model, changed


def _check_opset(model: onnx.ModelProto, name: str) -> None:
    import onnx

    newest = onnx.defs.onnx_opset_version()
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx") and not _OLDEST <= entry.version <= newest:
            raise StageError(
                f"{name} has opset {entry.version}; known are {_OLDEST} to {newest}",
                hint=f"Export it with opset_version={min(newest, 21)}, or convert it with onnx.version_converter.",
            )


def _check_external(model: onnx.ModelProto, name: str) -> None:
    tensors = list(external_tensors(model))
    if not tensors:
        return
    files = dict.fromkeys(entry.value for one in tensors for entry in one.external_data if entry.key == "location")
    raise StageError(
        f"{name} has {len(tensors)} of its constants in another file: {several([escape.quoted(one) for one in files])}",
        hint="Give it as `file:` with these beside it, or all in one: onnx.save(onnx.load('net.onnx'), 'whole.onnx').",
    )


def graph_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that a caller feeds: those of the graph without constants, which old exporters list as well."""
    constants = {one.name for one in model.graph.initializer}
    return [one for one in model.graph.input if one.name not in constants]


def _fix_shapes(model: onnx.ModelProto, name: str, shapes: Mapping[str, Sequence[int]]) -> None:
    inputs = graph_inputs(model)
    names = [one.name for one in inputs]
    for given in shapes:
        if given not in names:
            known = several([escape.quoted(one) for one in names])
            message = f"{name} has no input {escape.quoted(given)}; its inputs are {known}"
            raise StageError(message, at=("model", "shapes", given))
    for one in inputs:
        kind = one.type.tensor_type
        if not one.type.HasField("tensor_type"):
            raise StageError(f"input {escape.quoted(one.name)} of {name} is no tensor")
        if one.name in shapes:
            wanted = [int(size) for size in shapes[one.name]]
            _check_shape(one, wanted, name)
            del kind.shape.dim[:]
            for size in wanted:
                kind.shape.dim.add().dim_value = size
    dynamic = {one.name: one for one in inputs if _dynamic(one) or not one.type.tensor_type.HasField("shape")}
    if dynamic:
        told = [f"input {escape.quoted(called)} has {_what_is_open(one)}" for called, one in dynamic.items()]
        sizes = [f"{_yaml(called)}: [{_example(one)}]" for called, one in dynamic.items()]
        sizes += [f"{_yaml(called)}: {list(given)}" for called, given in shapes.items()]
        named = any(re.search(r"[a-z]", _example(one)) for one in dynamic.values())
        where = "" if "://" in name else f"file: {_yaml(name)}, "
        raise StageError(
            f"{name}: {'; '.join(told)}",
            hint=f"{_UNTOLD} Say the sizes in the recipe{', with numbers in place of names' if named else ''}:\n"
            f"model: {{{where}shapes: {{{', '.join(sizes)}}}}}",
        )


def _what_is_open(one: onnx.ValueInfoProto) -> str:
    axes = _dynamic(one)
    return f"dynamic axes: {', '.join(axes)}" if axes else "no shape"


def _yaml(text: str) -> str:
    """A text as YAML has it in a flow mapping: quoted where it would be something else."""
    plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text) and text.lower() not in _YAML_WORDS
    return text if plain else json.dumps(text)


def _forget_sizes_below_1(model: onnx.ModelProto) -> bool:
    """Make the sizes -1 and 0, which some exporters write for dynamic axes, unknown; whether there was one."""
    changed = False
    graph = model.graph
    for one in (*graph.input, *graph.value_info, *graph.output):
        for dim in one.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < 1:
                dim.ClearField("value")
                changed = True
    return changed


def _check_shape(one: onnx.ValueInfoProto, wanted: Sequence[int], name: str) -> None:
    dims = one.type.tensor_type.shape.dim
    fixed = [max(dim.dim_value, 0) for dim in dims]  # exporters write -1 for a dynamic axis, too
    fits = not dims or (
        len(wanted) == len(fixed) and all(size in (0, other) for size, other in zip(fixed, wanted, strict=True))
    )
    if not fits:
        sizes = [str(dim.dim_value) if dim.dim_value > 0 else dim.dim_param or "?" for dim in dims]
        raise StageError(
            f"input {escape.quoted(one.name)} of {name} is [{escape.line(', '.join(sizes))}], not {list(wanted)}",
            at=("model", "shapes", one.name),
        )


def _with_shapes(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model with the shapes of its outputs, which a file may leave out as they follow. Raises StageError."""
    import onnx

    from stages.import_model.onnx.unregistered import refuse_unregistered

    if all(one.type.tensor_type.HasField("shape") for one in model.graph.output):
        return model
    with suppress(Exception):  # what is unsound is told by the checker
        model = onnx.shape_inference.infer_shapes(model)
    for one in model.graph.output:
        if not one.type.tensor_type.HasField("shape"):
            refuse_unregistered(model)
            raise StageError(
                f"output {escape.quoted(one.name)} of {name} has no shape, and none follows from the operators",
                hint="Export it again, or write the shapes with onnx.shape_inference.infer_shapes.",
            )
    return model


def _example(one: onnx.ValueInfoProto) -> str:
    """`1, 3, height, width`: the sizes that are known, 1 for the batch, names for the others."""
    sizes = [
        str(dim.dim_value) if dim.dim_value > 0 else "1" if axis == 0 else escape.name(dim.dim_param) or f"size{axis}"
        for axis, dim in enumerate(one.type.tensor_type.shape.dim)
    ]
    return ", ".join(sizes) or "1, ..."


def _dynamic(one: onnx.ValueInfoProto) -> list[str]:
    """`0 ('batch')` for each axis without a size."""
    return [
        f"{axis} ({escape.quoted(dim.dim_param)})" if dim.dim_param else str(axis)
        for axis, dim in enumerate(one.type.tensor_type.shape.dim)
        if dim.dim_value <= 0
    ]
