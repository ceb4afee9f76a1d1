"""Constant structures of C: int32 fields, in the order of a header."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

SIZES = ("height", "width", "channels", "out_height", "out_width")
TAPS = ("kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x", "top", "left")
UNDILATED = tuple(field for field in TAPS if not field.startswith("dilation"))


@dataclass(frozen=True)
class Structure:
    """A C structure: `name` in a header, and its int32 fields."""

    name: str
    fields: tuple[str, ...]

    @property
    def shape(self) -> tuple[int]:
        """The structure's shape as an int32 buffer."""
        return (len(self.fields),)

    def of(self, values: Mapping[str, int]) -> Array:
        """Return the structure as int32 values. Raise KeyError for missing or unknown fields."""
        if set(values) != set(self.fields):
            raise KeyError(f"{self.name}: {sorted(set(values) ^ set(self.fields))}")
        return np.array([values[field] for field in self.fields], np.int32)


def sizes(view: LayerView) -> dict[str, int]:
    """Return the size fields of a layer's images."""
    return dict(zip(SIZES, (*view.inputs[0].shape[1:], *view.outputs[0].shape[1:3]), strict=True))


def pool_fields(view: LayerView) -> dict[str, int]:
    """Return SIZES, UNDILATED, low and high of a pooling layer."""
    op = view.op
    windows = {field: value for field, value in taps(op).items() if field in UNDILATED}
    return {**sizes(view), **windows, "low": op.act_min, "high": op.act_max}


def taps(op: Any) -> dict[str, int]:
    """Return the fields with the geometry of an operator's windows."""
    dilation = getattr(op, "dilation", (1, 1))
    values = (*op.kernel, *op.stride, *dilation, op.padding[0], op.padding[1])
    return dict(zip(TAPS, values, strict=True))
