"""Tables of the imported file as TVM's converter takes them."""

from __future__ import annotations

from typing import Any

from tflite.Tensor import Tensor
from tflite.TensorType import TensorType


class Widened(Tensor):  # type: ignore[misc]
    """A tensor of the file that says int8: what `Converter.constant` makes of int4, which TVM does not know."""

    @classmethod
    def of(cls, tensor: Any) -> Widened:
        made = cls()
        made.Init(tensor._tab.Bytes, tensor._tab.Pos)
        return made

    def Type(self) -> int:
        return int(TensorType.INT8)


def options_of(op: Any, table: str) -> Any:
    """The operator's options as the flatbuffer class `table`."""
    import tflite

    options = getattr(tflite, table)()
    raw = op.BuiltinOptions()
    options.Init(raw.Bytes, raw.Pos)
    return options
