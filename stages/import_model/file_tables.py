"""Flatbuffer tables of the imported file in the form that TVM's converter reads."""

from __future__ import annotations

from typing import Any

import tflite
from tflite.Tensor import Tensor
from tflite.TensorType import TensorType


class Widened(Tensor):  # type: ignore[misc]
    """An int4 tensor that reports int8, as TVM has no int4; the converter unpacks the values."""

    @classmethod
    def of(cls, tensor: Any) -> Widened:
        """Return a copy of the table `tensor` with the type int8."""
        widened = cls()
        widened.Init(tensor._tab.Bytes, tensor._tab.Pos)
        return widened

    def Type(self) -> int:
        """Return the type code of int8."""
        return int(TensorType.INT8)


def options_of(op: Any, table: str) -> Any:
    """Return the operator's options as the flatbuffer class `table`."""
    options = getattr(tflite, table)()
    raw = op.BuiltinOptions()
    options.Init(raw.Bytes, raw.Pos)
    return options
