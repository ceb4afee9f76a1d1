"""Windows, strides and dilations without what has no effect on the image that they slide over.

A window of 2^30 on an image of 4 sees the whole image wherever it stands, and so does one of 8. LiteRT looks at no more
than the image; TVM and what comes after it would walk over all of the padding. So TVM is given the smallest values that
make each output of the same elements.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from stages.import_model.checks import operator_error
from stages.ir.arithmetic.sliding import places
from stages.ir.models.flatbuffer import Table
from stages.ir.models.operator_options import number_of
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo, opened, subgraphs
from stages.ir.operators.layer import Window
from stages.ir.operators.table import OPERATORS

_SAME = 0
_SLIDING = frozenset(
    operator.name
    for operator in OPERATORS.values()
    if operator.operands[0] == 0 and any(issubclass(layer, Window) for layer in operator.layers)
)


def sliding_window(size: int, window: int, stride: int, padding: int) -> tuple[int, int]:
    """Window and stride along one axis of `size` that give every output of a pool the same elements.

    Both at least 1; a window that is not padded (`padding` other than 0) fits the image.
    """
    stride = min(stride, size)
    return (min(window, _reach(size, stride)) if padding == _SAME else window), stride


def sliding_taps(size: int, taps: int, stride: int, dilation: int, padding: int) -> tuple[int, int]:
    """Stride and dilation that give every tap of a convolution the same elements; as `sliding_window`."""
    stride = min(stride, size)
    if taps == 1:
        return stride, 1
    if padding != _SAME:
        return stride, dilation
    # Beyond this, all taps but the middle one are in the padding; the middle one's place depends on the parity.
    most = 2 * _reach(size, stride) + 2
    return stride, min(dilation, most + (dilation - most) % 2)


def _reach(size: int, stride: int) -> int:
    """From where the first output of a padded image starts to the image's end, for a window that always sees it all."""
    return size + (places(size, 1, stride, 1, same=True) - 1) * stride


def without_excess(data: bytes, info: ModelInfo) -> bytes:
    """The file with the effective windows, strides and dilations in its options; `data` itself if all are so.

    Raises StageError when two operators share one table of options and would need different ones.
    """
    changes = [(operator, dict(_changes(operator, info))) for operator in info.operators if operator.op in _SLIDING]
    if not any(wanted for _, wanted in changes):
        return data
    made, wrote = bytearray(data), dict[int, int]()
    with opened(data, "model") as model:
        tables = subgraphs(model)[0].tables(3, "operator")
        for operator, wanted in changes:
            options = tables[operator.index].table(4, f"the options of operator {operator.index}")
            assert options is not None and operator.options is not None
            for name, value in (dict(operator.options.fields) | wanted).items():
                if name in wanted or name.startswith(("stride", "filter", "dilation")):
                    _write(made, wrote, options, number_of(operator.options.table, name), value, operator, info)
    return bytes(made)


def _write(
    made: bytearray,
    wrote: dict[int, int],
    options: Table,
    number: int,
    value: int,
    operator: OperatorInfo,
    info: ModelInfo,
) -> None:
    if not options.has(number):  # the schema's default, 1
        return
    place = options.place(number)
    if wrote.setdefault(place, value) != value:
        raise operator_error(operator, info, "shares its options with another operator, whose image has another size")
    struct.pack_into("<i", made, place, value)


def _changes(operator: OperatorInfo, info: ModelInfo) -> Iterator[tuple[str, int]]:
    """Names and values of the options to be changed."""
    assert operator.options is not None
    fields, image = operator.options.fields, info.tensors[operator.inputs[0]].shape[1:3]
    for axis, size in zip("hw", image, strict=True):
        stride = fields[f"stride_{axis}"]
        if "filter_h" in fields:
            window, step = sliding_window(size, fields[f"filter_{axis}"], stride, fields["padding"])
            wanted = {f"filter_{axis}": window, f"stride_{axis}": step}
        else:
            taps = info.tensors[operator.inputs[1]].shape["hw".index(axis) + 1]
            step, dilation = sliding_taps(size, taps, stride, fields[f"dilation_{axis}"], fields["padding"])
            wanted = {f"stride_{axis}": step, f"dilation_{axis}": dilation}
        yield from ((name, value) for name, value in wanted.items() if fields[name] != value)
