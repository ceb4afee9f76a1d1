"""The rows of its inputs that a float operator needs for a row of its output."""

from typing import Any

from tvm import relax
from tvm.ir.expr import GenericConst

from stages.ir.operators.floats import FloatRows
from stages.ir.relax_module import ELEMENTWISE, operands_of

# What a variable was computed from: nothing (a parameter), the same rows, the rows of a window.
_INPUT, _SAME, _WINDOW = range(3)


def float_rows(function: relax.Function) -> FloatRows | None:
    """Return the rows that an operator's function needs; None if it needs whole tensors.

    It may have one convolution, pool or PAD, which reads its input, and operators that work on single elements or join
    channels. Images are NHWC.
    """
    shapes = [tuple(map(int, parameter.ty.shape)) for parameter in function.params]
    if any(len(shape) != 4 or shape[0] != 1 or shape[1] != shapes[0][1] for shape in shapes):
        return None
    rows = FloatRows()
    levels: dict[Any, int] = dict.fromkeys(function.params, _INPUT)
    constants: set[Any] = set()
    for block in function.body.blocks:
        for binding in block.bindings:
            value = binding.value
            operands = operands_of(value) if isinstance(value, relax.Call) else [value]
            images = [operand for operand in operands if operand in levels]
            others = [operand for operand in operands if operand not in levels]
            if any(operand not in constants and not isinstance(operand, GenericConst) for operand in others):
                return None
            if not images:
                constants.add(binding.var)
            elif isinstance(value, relax.Var):
                levels[binding.var] = levels[value]
            elif (window := _window(value)) is not None:
                if _WINDOW in levels.values() or levels.get(value.args[0]) != _INPUT:
                    return None
                rows, levels[binding.var] = window, _WINDOW
            elif _is_by_row(value, others):
                levels[binding.var] = max(levels[image] for image in images) or _SAME
                if len({levels[image] == _WINDOW for image in images}) > 1:
                    return None
            else:
                return None
    result = levels.get(function.body.body, _INPUT)
    is_image = len(function.body.body.ty.shape) == 4
    return rows if is_image and result == (_WINDOW if _WINDOW in levels.values() else _SAME) else None


def _is_by_row(call: relax.Call, constants: list[Any]) -> bool:
    """Return whether an operator computes each row from the same row of its inputs."""
    if call.op.name == "relax.concat":
        return int(call.attrs.axis) % 4 == 3 and not constants
    flat = all((1, 1, 1, 1, *map(int, constant.ty.shape))[-4:][:2] == (1, 1) for constant in constants)
    return call.op.name in ELEMENTWISE and flat


def _window(call: relax.Call) -> FloatRows | None:
    """Return the window of a convolution, pool or PAD that can run by rows."""
    name, attrs = call.op.name, call.attrs
    if name == "relax.nn.pad":
        widths = [int(width) for width in attrs.pad_width]
        value = call.args[1] if len(call.args) > 1 else None
        is_zero = float(attrs.pad_value) == 0 if value is None else not value.value.numpy().any()
        if attrs.pad_mode != "constant" or not is_zero or any((*widths[:2], *widths[6:])) or min(widths) < 0:
            return None
        return FloatRows(padding=widths[2])
    if name == "relax.nn.conv2d" and attrs.data_layout == "NHWC":
        taps = int(call.args[1].ty.shape[attrs.kernel_layout.index("H")])
        size = (taps - 1) * int(attrs.dilation[0]) + 1
    elif name in ("relax.nn.avg_pool2d", "relax.nn.max_pool2d") and attrs.layout == "NHWC":
        size = (int(attrs.pool_size[0]) - 1) * int(attrs.dilation[0]) + 1
        height, rows = int(call.args[0].ty.shape[1]), int(call.ty.shape[1])
        last = (rows - 1) * int(attrs.strides[0]) + size
        if int(attrs.padding[0]) or last > height:
            return None  # rows of padding do not count, or are not 0
    else:
        return None
    return FloatRows(size=size, stride=int(attrs.strides[0]), padding=int(attrs.padding[0]))
