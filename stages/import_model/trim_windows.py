"""Trim windows, strides and dilations that are larger than the image they slide over.

On an image of size 4, a window of 2^30 and a window of 8 both see the whole image at each position. LiteRT reads
only the image, but TVM and later stages would loop over all padding. TVM gets the smallest values with which each
output sees the same elements.
"""

import struct
from collections.abc import Iterator

from stages.import_model.operators import operator_error
from stages.ir.arithmetic.sliding import places
from stages.ir.layers import Window
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.models.flatbuffer import Table
from stages.ir.models.operator_options import number_of
from stages.ir.models.tflite_reader import opened, subgraphs
from stages.ir.operators.table import OPERATORS

_SAME = 0
_SLIDING = frozenset(
    operator.name
    for operator in OPERATORS.values()
    if operator.weights.operands[0] == 0 and any(issubclass(layer, Window) for layer in operator.legalization.layers)
)


def sliding_window(size: int, window: int, stride: int, padding: int) -> tuple[int, int]:
    """Return the smallest window and stride of a pool along one axis with unchanged outputs.

    size: of the image; window, stride: at least 1; padding: the schema's Padding. Without padding the window fits the
    image.
    """
    stride = min(stride, size)
    return (min(window, _covering_window(size, stride)) if padding == _SAME else window), stride


def sliding_taps(size: int, taps: int, stride: int, dilation: int, padding: int) -> tuple[int, int]:
    """Return the smallest stride and dilation of a convolution with unchanged outputs."""
    stride = min(stride, size)
    if taps == 1:
        return stride, 1
    if padding != _SAME:
        return stride, dilation
    # Beyond this, all taps but the middle one are in the padding. The parity decides the position of the middle tap.
    most = 2 * _covering_window(size, stride) + 2
    return stride, min(dilation, most + (dilation - most) % 2)


def _covering_window(size: int, stride: int) -> int:
    """Return a window size that covers the whole image from each output of a padded image."""
    return size + (places(size, 1, stride, 1, same=True) - 1) * stride


def trim_options(data: bytes, info: ModelInfo) -> bytes:
    """Return the file with trimmed windows, strides and dilations; `data` if nothing changes.

    Raises StageError if two operators share an options table and need different values.
    """
    changes = [(operator, dict(_changes(operator, info))) for operator in info.operators if operator.op in _SLIDING]
    if not any(new_values for _, new_values in changes):
        return data
    new_data, written = bytearray(data), dict[int, int]()
    with opened(data, "model") as model:
        tables = subgraphs(model)[0].tables(3, "operator")
        for operator, new_values in changes:
            options = tables[operator.index].table(4, f"the options of operator {operator.index}")
            assert options is not None and operator.options is not None
            for name, value in (dict(operator.options.fields) | new_values).items():
                if name in new_values or name.startswith(("stride", "filter", "dilation")):
                    _write(new_data, written, options, number_of(operator.options.table, name), value, operator, info)
    return bytes(new_data)


def _write(
    new_data: bytearray,
    written: dict[int, int],
    options: Table,
    number: int,
    value: int,
    operator: OperatorInfo,
    info: ModelInfo,
) -> None:
    if not options.has(number):  # the schema's default, 1
        return
    place = options.place(number)
    if written.setdefault(place, value) != value:
        raise operator_error(
            operator, info, "shares its options with an operator on an image of another size; give each its own options"
        )
    struct.pack_into("<i", new_data, place, value)


def _changes(operator: OperatorInfo, info: ModelInfo) -> Iterator[tuple[str, int]]:
    """Yield name and new value of each option that changes."""
    assert operator.options is not None
    fields, image = operator.options.fields, info.tensors[operator.inputs[0]].shape[1:3]
    for axis, size in zip("hw", image, strict=True):
        stride = fields[f"stride_{axis}"]
        if "filter_h" in fields:
            window, step = sliding_window(size, fields[f"filter_{axis}"], stride, fields["padding"])
            new_values = {f"filter_{axis}": window, f"stride_{axis}": step}
        else:
            taps = info.tensors[operator.inputs[1]].shape["hw".index(axis) + 1]
            step, dilation = sliding_taps(size, taps, stride, fields[f"dilation_{axis}"], fields["padding"])
            new_values = {f"stride_{axis}": step, f"dilation_{axis}": dilation}
        yield from ((name, value) for name, value in new_values.items() if fields[name] != value)
