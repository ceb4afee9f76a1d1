"""Inputs of an ONNX graph that a recipe replaces: constants, and kept states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stages.base import StageError
from stages.support.lazy import np, onnx
from stages.support.messages import escape
from stages.support.messages.wording import several

Number = bool | int | float


def check_name(kind: str, value: str, names: Sequence[str], file: str, option: str, key: str = "") -> None:
    """Raise StageError for a name that is not among the file's inputs or outputs (`kind`)."""
    if value not in names:
        known = several([escape.quoted(entry) for entry in names]) or "none"
        message = f"{file} has no {kind} {escape.quoted(value)}; its {kind}s are {known}"
        raise StageError(message, at=("model", option, key or value))


def fix_constants(model: onnx.ModelProto, name: str, constants: Mapping[str, Number | Sequence[Number]]) -> None:
    """Turn inputs with fixed shapes into constants.

    One number fills any shape. Raises StageError.
    """
    graph = model.graph
    for input_name, value in constants.items():
        check_name("input", input_name, [entry.name for entry in graph.input], name, "constants")
        entry = next(entry for entry in graph.input if entry.name == input_name)
        tensor_type = entry.type.tensor_type
        shape = tuple(dim.dim_value for dim in tensor_type.shape.dim)
        numbers = np.asarray(value)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor_type.elem_type)
        quoted, at = escape.quoted(input_name), ("model", "constants", input_name)
        if numbers.ndim and numbers.size != np.prod(shape, dtype=int):
            raise StageError(
                f"input {quoted} of {name} has the shape {[*shape]}, but {numbers.size} values are given", at=at
            )
        typed, wrong = _typed(numbers, np.dtype(dtype))
        if wrong is not None:
            raise StageError(f"input {quoted} of {name} is {np.dtype(dtype)}; {wrong} is not a valid value", at=at)
        filled = np.ascontiguousarray(typed.reshape(shape) if numbers.ndim else np.full(shape, typed))
        graph.initializer.append(onnx.numpy_helper.from_array(filled, input_name))
        graph.input.remove(entry)


def _typed(numbers: np.ndarray, dtype: np.dtype[Any]) -> tuple[np.ndarray, Any]:
    """Return the numbers as `dtype`, and the first that `dtype` cannot represent, or None."""
    flat = numbers.reshape(-1)
    if dtype.kind not in "biuf":
        return numbers, flat[0]
    try:
        with np.errstate(all="ignore"):
            typed = numbers.astype(dtype)
    except OverflowError:
        return numbers, max(flat, key=abs)
    # Any number is rounded to a float; other types must have its exact value.
    wrong = ~np.isfinite(typed) if dtype.kind == "f" else typed != numbers
    return typed, next(iter(flat[wrong.reshape(-1)]), None)


def check_states(model: onnx.ModelProto, name: str, states: Mapping[str, str]) -> None:
    """Raise StageError unless each output exists, for one input of its type."""
    inputs, outputs = ({entry.name: entry for entry in ends} for ends in (model.graph.input, model.graph.output))
    writers: dict[str, str] = {}
    for output, state in states.items():
        check_name("output", output, [*outputs], name, "states")
        check_name("input", state, [*inputs], name, "states", output)
        at = ("model", "states", output)
        if state in writers:
            both = " and ".join(escape.quoted(writer) for writer in (writers[state], output))
            raise StageError(f"the outputs {both} of {name} both write the state {escape.quoted(state)}", at=at)
        writers[state] = output
        read, written = (ends[end].type.tensor_type.elem_type for ends, end in ((inputs, state), (outputs, output)))
        if read != written:
            raise StageError(f"{_mismatch(name, output, _type(written), state, _type(read))}", at=at)
    for kind, ends, joined in (("input", inputs, {*states.values()}), ("output", outputs, {*states})):
        if states and not {*ends} - joined:
            raise StageError(f"{name} has no {kind} besides its states", at=("model", "states"))


def check_state_shapes(name: str, output: str, written: Sequence[int], state: str, read: Sequence[int]) -> None:
    """Raise StageError unless a state has the shape of the output that writes it."""
    if tuple(written) != tuple(read):
        message = _mismatch(name, output, str([*written]), state, str([*read]))
        raise StageError(message, at=("model", "states", output))


def _mismatch(name: str, output: str, written: str, state: str, read: str) -> str:
    sides = f"output {escape.quoted(output)} is {written}, input {escape.quoted(state)} is {read}"
    return f"both ends of a state of {name} must match: {sides}"


def _type(elem_type: int) -> str:
    return str(onnx.TensorProto.DataType.Name(elem_type)).lower()
