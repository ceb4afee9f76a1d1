"""Errors of `incremental`: networks without a window of time, and invalid options."""

from math import prod

from stages.base import StageError
from stages.import_model.incremental.plan import Plan
from stages.import_model.incremental.rows import Rows
from stages.import_model.incremental.steps import fields
from stages.ir.model_info import ModelInfo
from stages.ir.models.complexity import operator_macs
from stages.ir.operators.table import OPERATORS
from stages.support.messages import escape
from stages.support.messages.operator_error import operator_label

_PLACE = ("model", "incremental")


def sound_source(info: ModelInfo, name: str, axis: int | None) -> tuple[int, Rows]:
    """Return the input with the window, and its time axis. Raises StageError if there is none."""
    if any(tensor.variable for tensor in info.tensors):
        raise _error(f"{name} already keeps state between runs", "Remove incremental: a run reads new frames only.")
    if len(info.inputs) != 1:
        inputs = ", ".join(escape.quoted(info.tensors[index].name) for index in info.inputs)
        raise _error(
            f"{name} has {len(info.inputs)} inputs ({inputs}); incremental supports one input, the window",
            "Export the network with the window as its only input.",
        )
    source = info.inputs[0]
    shape = info.tensors[source].shape
    flat = len(shape) == 2 or (len(shape) > 2 and prod(shape) == max(shape))
    view = _reshaped(info, source) if flat else shape
    called = f"the input {escape.quoted(info.tensors[source].name)} of {name} has the shape {list(shape)}"
    if axis is None:
        axis = next((at for at, size in enumerate(view) if at and size > 1), 0)
        if len(view) < 3 or not axis:
            raise _error(f"{called}, which has no axis of time", "Use a network whose input is a window of frames.")
    elif not 0 < axis < len(view):
        raise _error(f"{called}, which has no axis {axis}", f"Set axis from 1 to {len(view) - 1} (default: 1).", "axis")
    count = view[axis]
    if view is shape or view == shape:
        rows = Rows(axis, 1, count, 1, (0, count))
    else:  # time is the outer part of the flat axis
        outer = next((at for at, size in enumerate(shape) if size > 1), 1)
        if prod(view[:axis]) != 1:
            raise _error(f"{called}; only its outermost axis can be time", "Leave out axis.", "axis")
        rows = Rows(outer, shape[outer] // count, count, 1, (0, count))
    if count < 2:
        raise _error(f"{called}, with {count} frame on axis {axis}", "Set axis to the axis of time.")
    return source, rows


def _reshaped(info: ModelInfo, source: int) -> tuple[int, ...]:
    """Return the shape of a flat input after its RESHAPE; without one, its own shape."""
    for operator in info.operators:
        if operator.op == "RESHAPE" and operator.inputs[0] == source:
            return info.tensors[operator.outputs[0]].shape
    return info.tensors[source].shape


def check_frames(info: ModelInfo, name: str, rows: Rows, frames: int | None, default: int) -> None:
    """Raise StageError if `frames` is not less than the window, or does not match the strides."""
    if frames is not None and frames % default and default % frames:
        raise _error(
            f"frames is {frames}, but the strides in time of {name} need a multiple or a divisor of {default}",
            f"Remove frames: {default} is the default.",
            "frames",
        )
    if (frames or default) >= rows.count:
        raise _error(
            f"frames is {frames or default}, but the window of {name} has {rows.count} frames: all would be new",
            "Use fewer new frames, or remove incremental.",
            *(("frames",) if frames else ()),
        )


def check_gain(info: ModelInfo, name: str, planned: Plan, new: ModelInfo, default: int) -> None:
    """Raise StageError if a run saves no work; name the first layer that needs all rows."""
    before, after = _work(info), _work(new)
    if after < before:
        return
    reason = ""
    if planned.whole:
        number, why = next(iter(planned.whole.items()))
        operator = info.operators[number]
        reason = f"\n  {operator_label(number, operator.op, info.tensors[operator.outputs[0]].name)} {why}"
    raise _error(
        f"incremental saves no work in {name}: {after:,} operations per run, {before:,} for the whole window{reason}",
        "Train the network without padding in time (padding='valid'), or remove incremental."
        if planned.frames == default
        else f"Remove frames: {default} is the default.",
    )


def _work(info: ModelInfo) -> int:
    """Return the approximate operations of a run.

    Products and elements of windows count 1, each copy 1/4.
    """
    total = 0
    for operator in info.operators:
        window = fields(operator).get("filter_h", 1) * fields(operator).get("filter_w", 1)
        elements = sum(prod(info.tensors[index].shape) for index in operator.outputs)
        is_copy = operator.op in OPERATORS and OPERATORS[operator.op].moves
        total += operator_macs(info, operator) or (elements // 4 if is_copy else elements * window)
    return total


def _error(problem: str, hint: str, *key: str) -> StageError:
    return StageError(problem, hint=hint, at=(*_PLACE, *key))
