"""The rule of each operator: how it treats time.

An operator without a rule needs the whole window.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod

from stages.import_model.incremental.rows import Rows
from stages.import_model.incremental.steps import RESHAPES, Same, Sliding, Step, Window, fields
from stages.ir.arithmetic.sliding import same_padding
from stages.ir.model_info import ModelInfo, OperatorInfo

_SAME = 0  # the schema's Padding
_ELEMENTWISE = frozenset(
    {
        *("ABS", "CAST", "CEIL", "COS", "DEQUANTIZE", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG"),
        *("LOGICAL_NOT", "LOGISTIC", "NEG", "PRELU", "QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "ROUND", "RSQRT"),
        *("SIN", "SQRT", "SQUARE", "TANH"),
        *("ADD", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "MUL", "POW", "SQUARED_DIFFERENCE", "SUB"),
        *("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "NOT_EQUAL"),
        *("SELECT", "SELECT_V2"),
    }
)
_LAST_AXIS = ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")
_REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ALL", "REDUCE_ANY")

Tracked = Mapping[int, Rows]


class WholeWindow(Exception):
    """The operator must compute the whole window; the message completes "CONV_2D 'conv' ..."."""


class SeesAllRows(WholeWindow):
    """The operator's result may depend on all rows of the window."""

    def __init__(self, message: str = "needs all rows of the window") -> None:
        super().__init__(message)


def step_of(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    """Return how an operator treats time; `tracked` has the tensors with time.

    Raises WholeWindow.
    """
    rule = _RULES.get(operator.op)
    if rule is None:
        raise SeesAllRows
    return rule(operator, info, tracked)


def _elementwise(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    """Rule of element-wise operators. Operands broadcast; axes align at the right."""
    (result,) = operator.outputs
    shape = info.tensors[result].shape
    moving = {at: tracked[index] for at, index in enumerate(operator.inputs) if index in tracked}
    first = next(iter(moving.values()))
    axis = first.axis + len(shape) - len(info.tensors[operator.inputs[next(iter(moving))]].shape)
    for at, index in enumerate(operator.inputs):
        tensor = info.tensors[index]
        own_axis = axis - len(shape) + len(tensor.shape)
        if at not in moving:
            if own_axis >= 0 and tensor.shape[own_axis] > 1:
                raise WholeWindow("has a constant that differs from row to row")
            continue
        rows = moving[at]
        if (rows.axis, rows.unit, rows.count, rows.stride) != (own_axis, first.unit, first.count, first.stride):
            raise WholeWindow("combines tensors whose rows of time differ")
    clean = max(rows.clean[0] for rows in moving.values()), min(rows.clean[1] for rows in moving.values())
    return Same(operator, moving, (replace(first, axis=axis, clean=(clean[0], max(clean))),))


def _over_last(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    rows = tracked[operator.inputs[0]]
    if rows.axis == len(info.tensors[operator.inputs[0]].shape) - 1:
        raise SeesAllRows
    return Same(operator, {0: rows}, (rows,))


def _sliding(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    if operator.inputs[0] not in tracked or any(index in tracked for index in operator.inputs[1:]):
        raise WholeWindow("computes its weights")
    source, shape = tracked[operator.inputs[0]], info.tensors[operator.inputs[0]].shape
    if source.axis not in (1, 2) or source.unit != 1:
        raise WholeWindow("has time on its axis of channels")
    windows = [_window(operator, info, axis, shape[axis]) for axis in (source.axis, 3 - source.axis)]
    count = info.tensors[operator.outputs[0]].shape[source.axis]
    rows = windows[0].rows(source, source.axis, count)
    return Sliding(operator, source, (rows,), windows[0], (windows[1], shape[3 - source.axis]))


def _window(operator: OperatorInfo, info: ModelInfo, axis: int, size: int) -> Window:
    options, side = fields(operator), "hw"[axis - 1]
    taps = options[f"filter_{side}"] if f"filter_{side}" in options else info.tensors[operator.inputs[1]].shape[axis]
    stride, dilation = options[f"stride_{side}"], options.get(f"dilation_{side}", 1)
    before = same_padding(size, taps, stride, dilation)[0] if options["padding"] == _SAME else 0
    return Window(taps, stride, dilation, before)


def _moved(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    """PAD, PADV2, SLICE and STRIDED_SLICE."""
    source = tracked.get(operator.inputs[0])
    constants = [info.tensors[index] for index in operator.inputs[1:]]
    if source is None or source.unit != 1 or any(tensor.data is None for tensor in constants):
        raise SeesAllRows
    shape, result = info.tensors[operator.inputs[0]].shape, info.tensors[operator.outputs[0]].shape
    values, axis, stride = constants[0].values(), source.axis, 1
    if operator.op in ("PAD", "PADV2"):
        before = int(values[axis][0])
    elif operator.op == "SLICE":
        before = -int(values[axis])
    else:
        options, bit = fields(operator), 1 << axis
        stride = int(constants[2].values()[axis])
        if options["ellipsis_mask"] or options["new_axis_mask"] or options["shrink_axis_mask"] & bit or stride < 0:
            raise WholeWindow("selects single rows of time")
        begin = 0 if options["begin_mask"] & bit else int(values[axis])
        before = -min(begin + shape[axis] if begin < 0 else begin, shape[axis])
        axis -= (options["shrink_axis_mask"] & (bit - 1)).bit_count()
    window = Window(1, stride, 1, before)
    return Sliding(operator, source, (window.rows(source, axis, result[axis]),), window)


def _reshaped(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    """Find the time axis of a RESHAPE's result: it has as many elements before it as time had."""
    rows = tracked[operator.inputs[0]]
    shape, result = info.tensors[operator.inputs[0]].shape, info.tensors[operator.outputs[0]].shape
    for axis, size in enumerate(result):
        if prod(result[:axis]) == prod(shape[: rows.axis]) and size % rows.count == 0:
            moved = replace(rows, axis=axis, unit=size // rows.count)
            return Same(operator, {0: rows}, (moved,))
    raise WholeWindow("merges time with another axis")


def _transposed(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    rows, order = tracked[operator.inputs[0]], info.tensors[operator.inputs[1]]
    if order.data is None:
        raise SeesAllRows
    axis = [int(axis) for axis in order.values()].index(rows.axis)
    return Same(operator, {0: rows}, (replace(rows, axis=axis),))


def _joined(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    """CONCATENATION along an axis other than time."""
    if any(index not in tracked for index in operator.inputs):
        raise WholeWindow("combines a tensor with time and a tensor without")
    axis = int(fields(operator)["axis"]) % len(info.tensors[operator.outputs[0]].shape)
    if axis == tracked[operator.inputs[0]].axis:
        raise WholeWindow("concatenates along time")
    return _elementwise(operator, info, tracked)


def _split(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    at, axis_at = (1, 0) if operator.op == "SPLIT" else (0, 2)
    rows, axis = tracked.get(operator.inputs[at]), info.tensors[operator.inputs[axis_at]]
    if rows is None or axis.data is None:
        raise SeesAllRows
    if int(axis.values().reshape(-1)[0]) % len(info.tensors[operator.inputs[at]].shape) == rows.axis:
        raise WholeWindow("splits the window")
    return Same(operator, {at: rows}, (rows,) * len(operator.outputs))


def _reduced(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    rows, axes = tracked[operator.inputs[0]], info.tensors[operator.inputs[1]]
    rank = len(info.tensors[operator.inputs[0]].shape)
    reduced = {int(axis) % rank for axis in axes.values().reshape(-1)} if axes.data is not None else {rows.axis}
    if rows.axis in reduced:
        raise SeesAllRows
    dropped = 0 if fields(operator).get("keep_dims") else sum(axis < rows.axis for axis in reduced)
    return Same(operator, {0: rows}, (replace(rows, axis=rows.axis - dropped),))


def _connected(operator: OperatorInfo, info: ModelInfo, tracked: Tracked) -> Step:
    """FULLY_CONNECTED of single rows; one over several rows needs the whole window."""
    if operator.inputs[0] not in tracked or any(index in tracked for index in operator.inputs[1:]):
        raise SeesAllRows
    rows, shape = tracked[operator.inputs[0]], info.tensors[operator.inputs[0]].shape
    elements, depth = rows.unit * prod(shape[rows.axis + 1 :]), info.tensors[operator.inputs[1]].shape[-1]
    result = info.tensors[operator.outputs[0]].shape
    if elements % depth:
        raise SeesAllRows
    if fields(operator).get("keep_num_dims") and rows.axis < len(shape) - 1:
        return Same(operator, {0: rows}, (rows,))
    if prod(shape[: rows.axis]) != 1 or len(result) != 2:
        raise SeesAllRows
    return Same(operator, {0: rows}, (replace(rows, axis=0, unit=elements // depth),))


_Rule = Callable[[OperatorInfo, ModelInfo, Tracked], Step]
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(_LAST_AXIS, _over_last),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"), _sliding),
    **dict.fromkeys(("PAD", "PADV2", "SLICE", "STRIDED_SLICE"), _moved),
    **dict.fromkeys(RESHAPES, _reshaped),
    **dict.fromkeys(("SPLIT", "SPLIT_V"), _split),
    **dict.fromkeys(_REDUCTIONS, _reduced),
    "TRANSPOSE": _transposed,
    "CONCATENATION": _joined,
    "FULLY_CONNECTED": _connected,
}
