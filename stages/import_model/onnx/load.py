"""Read an ONNX file for translation: parse, check, inline functions, fix input shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from stages.base import StageError
from stages.import_model.onnx.ends import check_name, check_states, fix_constants
from stages.import_model.onnx.unregistered import for_checker, refuse_unregistered
from stages.ir.models.onnx_external import external_tensors
from stages.ir.models.onnx_parse import parsed
from stages.ir.models.other_files import FILE
from stages.support.lazy import onnx
from stages.support.messages import escape
from stages.support.messages.wording import several

_OLDEST = 7  # older operators broadcast by attributes
_YAML_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~")
_FIXED_SHAPES = "Shapes are fixed when the model is imported."


def load(
    data: bytes,
    name: str,
    shapes: Mapping[str, Sequence[int]],
    constants: Mapping[str, Any] | None = None,
    states: Mapping[str, str] | None = None,
) -> tuple[onnx.ModelProto, bool]:
    """Return the model in `data`, weights included, and whether it differs from the file.

    The model has the inputs' `shapes`, no inputs that are in `constants`, no local functions, no float16 and no If
    with a known condition. `states`, inputs by the outputs that write them, are checked. name: of the file, for
    messages. Raises StageError for an invalid file.
    """
    from stages.import_model.onnx.branches import inline_known_branches
    from stages.import_model.onnx.float16 import widen
    from stages.import_model.onnx.local_functions import inlined

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
        checker_message = re.sub(r"^/\S+:\d+: \w+: (Assertion `.*?` failed: )?", "", " ".join(str(error).split()))
        reason = escape.line(checker_message)[:300]
        raise StageError(f"{name} is a corrupt ONNX file: {reason}", hint="Export it again.", at=FILE) from None
    lists = {key: [len(value)] for key, value in (constants or {}).items() if isinstance(value, Sequence)}
    open_lists = {entry.name: lists[entry.name] for entry in model.graph.input if _is_open_list(entry, lists)}
    _fix_shapes(model, name, {**open_lists, **shapes})
    fix_constants(model, name, constants or {})
    changed |= bool(constants)
    check_states(model, name, states or {})
    changed |= inline_known_branches(model)
    return model, changed


def _is_open_list(entry: onnx.ValueInfoProto, lists: Mapping[str, Sequence[int]]) -> bool:
    """Whether a list of the recipe gives an input of one axis its size."""
    sizes = entry.type.tensor_type.shape.dim
    return entry.name in lists and len(sizes) == 1 and sizes[0].dim_value < 1


def _check_opset(model: onnx.ModelProto, name: str) -> None:
    newest = onnx.defs.onnx_opset_version()
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx") and not _OLDEST <= entry.version <= newest:
            raise StageError(
                f"{name} has opset {entry.version}; supported: {_OLDEST} to {newest}",
                hint=f"Export it with opset_version={min(newest, 21)}, or convert it with onnx.version_converter.",
            )


def _check_external(model: onnx.ModelProto, name: str) -> None:
    tensors = list(external_tensors(model))
    if not tensors:
        return
    locations = (entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location")
    files = several([escape.quoted(file) for file in dict.fromkeys(locations)])
    raise StageError(
        f"{name} has {len(tensors)} of its constants in another file: {files}",
        hint="Use `file:` and keep these files beside it, or save one: onnx.save(onnx.load('net.onnx'), 'whole.onnx').",
    )


def graph_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs to feed; old exporters also list constants as inputs."""
    constants = {entry.name for entry in model.graph.initializer}
    return [entry for entry in model.graph.input if entry.name not in constants]


def _fix_shapes(model: onnx.ModelProto, name: str, shapes: Mapping[str, Sequence[int]]) -> None:
    inputs = graph_inputs(model)
    names = [entry.name for entry in inputs]
    for input_name in shapes:
        check_name("input", input_name, names, name, "shapes")
    for entry in inputs:
        tensor_type = entry.type.tensor_type
        if not entry.type.HasField("tensor_type"):
            raise StageError(f"input {escape.quoted(entry.name)} of {name} is not a tensor")
        if entry.name in shapes:
            new_sizes = [int(size) for size in shapes[entry.name]]
            _check_shape(entry, new_sizes, name)
            del tensor_type.shape.dim[:]
            for size in new_sizes:
                tensor_type.shape.dim.add().dim_value = size
    dynamic = {entry.name: entry for entry in inputs if _dynamic(entry) or not entry.type.tensor_type.HasField("shape")}
    if dynamic:
        problems = [
            f"input {escape.quoted(input_name)} has {_missing_sizes(entry)}" for input_name, entry in dynamic.items()
        ]
        sizes = [f"{_yaml(input_name)}: [{_example(entry)}]" for input_name, entry in dynamic.items()]
        sizes += [f"{_yaml(input_name)}: {list(fixed)}" for input_name, fixed in shapes.items()]
        has_names = any(re.search(r"[a-z]", _example(entry)) for entry in dynamic.values())
        where = "" if "://" in name else f"file: {_yaml(name)}, "
        raise StageError(
            f"{name}: {'; '.join(problems)}",
            hint=f"{_FIXED_SHAPES} Set the sizes in the recipe{', with numbers for the names' if has_names else ''}:\n"
            f"model: {{{where}shapes: {{{', '.join(sizes)}}}}}",
        )


def _missing_sizes(entry: onnx.ValueInfoProto) -> str:
    axes = _dynamic(entry)
    return f"dynamic axes: {', '.join(axes)}" if axes else "no shape"


def _yaml(text: str) -> str:
    """Return a text for a YAML flow mapping, quoted if necessary."""
    plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text) and text.lower() not in _YAML_WORDS
    return text if plain else json.dumps(text)


def _forget_sizes_below_1(model: onnx.ModelProto) -> bool:
    """Make sizes -1 and 0, written for dynamic axes, unknown; return whether any changed."""
    changed = False
    graph = model.graph
    for entry in (*graph.input, *graph.value_info, *graph.output):
        for dim in entry.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < 1:
                dim.ClearField("value")
                changed = True
    return changed


def _check_shape(entry: onnx.ValueInfoProto, sizes: Sequence[int], name: str) -> None:
    dims = entry.type.tensor_type.shape.dim
    file_sizes = [max(dim.dim_value, 0) for dim in dims]  # exporters also write -1 for dynamic axes
    fits = not dims or (
        len(sizes) == len(file_sizes) and all(size in (0, other) for size, other in zip(file_sizes, sizes, strict=True))
    )
    if not fits:
        shown = [str(dim.dim_value) if dim.dim_value > 0 else dim.dim_param or "?" for dim in dims]
        raise StageError(
            f"input {escape.quoted(entry.name)} of {name} is [{escape.line(', '.join(shown))}], not {list(sizes)}",
            at=("model", "shapes", entry.name),
        )


def _with_shapes(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Return the model with inferred output shapes. Raises StageError."""
    if all(output.type.tensor_type.HasField("shape") for output in model.graph.output):
        return model
    with suppress(Exception):  # the checker reports invalid models
        model = onnx.shape_inference.infer_shapes(model)
        _infer_by_definitions(model)
    for output in model.graph.output:
        if not output.type.tensor_type.HasField("shape"):
            refuse_unregistered(model)
            raise StageError(
                f"output {escape.quoted(output.name)} of {name} has no shape, and the operators do not imply one",
                hint="Export it again, or write the shapes with onnx.shape_inference.infer_shapes.",
            )
    return model


def _infer_by_definitions(model: onnx.ModelProto) -> None:
    """Set missing output shapes by the definitions of operators, as for GroupNormalization."""
    from onnx import inliner

    missing = [output for output in model.graph.output if not output.type.tensor_type.HasField("shape")]
    if not missing:
        return
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    typed.graph.value_info.extend(  # definitions depend on types
        onnx.helper.make_tensor_value_info(entry.name, entry.data_type, entry.dims) for entry in model.graph.initializer
    )
    defined = inliner.inline_selected_functions(typed, [], exclude=True, inline_schema_functions=True)
    inferred = {entry.name: entry for entry in onnx.shape_inference.infer_shapes(defined, data_prop=True).graph.output}
    for output in missing:
        output.CopyFrom(inferred[output.name])


def _example(entry: onnx.ValueInfoProto) -> str:
    """Return `1, 3, height, width`: known sizes, 1 for the batch, names for other axes."""
    sizes = [
        str(dim.dim_value) if dim.dim_value > 0 else "1" if axis == 0 else escape.name(dim.dim_param) or f"size{axis}"
        for axis, dim in enumerate(entry.type.tensor_type.shape.dim)
    ]
    return ", ".join(sizes) or "1, ..."


def _dynamic(entry: onnx.ValueInfoProto) -> list[str]:
    """Return `0 ('batch')` for each axis without a size."""
    return [
        f"{axis} ({escape.quoted(dim.dim_param)})" if dim.dim_param else str(axis)
        for axis, dim in enumerate(entry.type.tensor_type.shape.dim)
        if dim.dim_value <= 0
    ]
