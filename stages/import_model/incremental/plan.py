"""Plan the rows that each run computes and keeps, and operators on the whole window."""

from dataclasses import dataclass, field, replace
from math import lcm

from stages.import_model.incremental.rows import Pieces, Range, Rows, pieces
from stages.import_model.incremental.rules import SeesAllRows, WholeWindow, step_of
from stages.import_model.incremental.steps import Same, Step
from stages.ir.model_info import ModelInfo, OperatorInfo


@dataclass
class Plan:
    """How a network computes new frames.

    frames  new frames per run
    rows    time axis of each tensor with rows that a run can reuse
    steps   operators that compute single rows, by number
    whole   reason of each operator with time that needs the whole window, by number
    pieces  rows that a run computes and keeps, of each tensor in `rows` that is needed
    """

    frames: int
    rows: dict[int, Rows]
    steps: dict[int, Step] = field(default_factory=dict)
    whole: dict[int, WholeWindow] = field(default_factory=dict)
    pieces: dict[int, Pieces] = field(default_factory=dict)


def default_frames(info: ModelInfo, source: int, rows: Rows) -> int:
    """Return the number of frames per run that lets the most layers reuse rows.

    It is a multiple of their strides.
    """
    strides = [entry.stride for entry in _tracked(info, source, rows, 1, any_stride=True).rows.values()]
    candidates = {lcm(*strides[: count + 1]) for count in range(len(strides))}
    for frames in sorted(candidates, reverse=True):
        if lcm(*(entry.stride for entry in _tracked(info, source, rows, frames).rows.values())) == frames:
            return frames
    return 1


def plan(info: ModelInfo, source: int, rows: Rows, frames: int) -> Plan:
    """Return the plan for `frames` new frames of the input `source` per run."""
    forced: dict[int, str] = {}
    while True:
        planned = _tracked(info, source, rows, frames, forced)
        blocked = _demand(info, source, planned)
        if blocked is None:
            return planned
        forced[blocked.index] = "is a pool whose windows exclude their padding in time"


def window_only(source: int, rows: Rows, frames: int) -> Plan:
    """Return the plan that keeps the window of frames and computes all of the network on it."""
    begin, count = rows.count - frames, rows.count
    return Plan(frames, {source: rows}, pieces={source: Pieces((0, 0), (0, begin), (begin, count))})


def _tracked(
    info: ModelInfo,
    source: int,
    rows: Rows,
    frames: int,
    forced: dict[int, str] | None = None,
    *,
    any_stride: bool = False,
) -> Plan:
    """Follow time from the input through the graph while rows can be reused.

    forced      operators that need the whole window, with the reason
    any_stride  follow strides that do not divide `frames`
    """
    planned, moving = Plan(frames, {source: rows}), {source}
    for operator in info.operators:
        if not moving & {*operator.inputs}:
            continue
        moving |= {*operator.outputs}
        if not any(index in planned.rows for index in operator.inputs):
            continue
        try:
            if forced and operator.index in forced:
                raise WholeWindow(forced[operator.index])
            if any(index in moving and index not in planned.rows for index in operator.inputs):
                raise WholeWindow("combines rows with a result of the whole window")
            step = step_of(operator, info, planned.rows)
            _check_reuse(operator, info, step, frames, any_stride=any_stride)
        except WholeWindow as reason:
            planned.whole[operator.index] = reason
            continue
        planned.steps[operator.index] = step
        planned.rows |= dict(zip(operator.outputs, step.results, strict=True))
    return planned


def _check_reuse(operator: OperatorInfo, info: ModelInfo, step: Step, frames: int, *, any_stride: bool) -> None:
    """Raise WholeWindow if no row of a result can be reused."""
    for index, rows in zip(operator.outputs, step.results, strict=True):
        tensor, clean = info.tensors[index], rows.clean[1] - rows.clean[0]
        if tensor.scale.size > 1 and tensor.axis == rows.axis:
            raise WholeWindow("has a different scale in each row of time")
        if rows.count == 1:
            source = next(iter(step.inputs.values()))
            raise SeesAllRows(f"reads all {source.count} rows of the window")
        if not rows.step(frames) and not any_stride:
            raise WholeWindow(f"has one row per {rows.stride} frames, which does not divide {frames}")
        if rows.reusable(lcm(frames, rows.stride)):
            continue
        if clean < rows.count and not isinstance(step, Same):
            seen = f"{rows.count - clean} of its {rows.count} rows depend on padding at the ends of the window"
            raise WholeWindow(f"{seen}, so no row can be reused")
        raise WholeWindow(f"has {rows.count} rows, all of which change in each run")


def _demand(info: ModelInfo, source: int, planned: Plan) -> OperatorInfo | None:
    """Set the pieces of each tensor, from the outputs back to the input.

    Returns an operator that cannot compute its rows; None if all can.
    """
    demands: dict[int, list[Range]] = {}

    def demand(index: int, part: Range) -> None:
        demands.setdefault(index, []).append(part)

    for index in info.outputs:
        if index in planned.rows:
            demand(index, (0, planned.rows[index].count))
    for operator in reversed(info.operators):
        step = planned.steps.get(operator.index)
        if step is None:
            for index in {*operator.inputs} & planned.rows.keys():
                demand(index, (0, planned.rows[index].count))
            continue
        results = [index for index in operator.outputs if index in demands]
        for index in results:
            planned.pieces[index] = pieces(planned.rows[index], planned.frames, demands[index])
        for part in dict.fromkeys(part for index in results for part in planned.pieces[index].computed):
            if not step.can_write(part):
                return operator
            for position, needed in step.reads(part).items():
                demand(operator.inputs[position], needed)
    window, count = pieces(planned.rows[source], planned.frames, demands[source]), planned.rows[source].count
    planned.pieces[source] = replace(window, fresh=(count - planned.frames, count))
    return None
