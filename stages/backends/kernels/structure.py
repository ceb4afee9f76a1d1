"""Constant structures of C: int32 fields, in the order of a header."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

SIZES = ("height", "width", "channels", "out_height", "out_width")
TAPS = ("kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x", "top", "left")
UNDILATED = tuple(field for field in TAPS if not field.startswith("dilation"))
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


@dataclass(frozen=True)
class Structure:
    """A C structure of int32 fields."""

    name: str
    fields: tuple[str, ...]

    @classmethod
    def of_header(cls, name: str, module: str, header: str) -> Self:
        """Return `struct name` as a header declares it.

        module  `__file__` of a module; `header` is relative to its folder

        Raises LookupError for a structure that the header does not declare, or with fields that are not int32_t.
        """
        text = _COMMENT.sub("", (Path(module).parent / header).read_text(encoding="utf-8"))
        body = re.search(rf"\bstruct {name} {{((?:\s*int32_t [\w\s,]+;)+)\s*}};", text)
        if body is None:
            raise LookupError(f"{header} declares no `struct {name}` of int32_t fields")
        return cls(name, tuple(re.findall(r"\w+", body[1].replace("int32_t ", ""))))

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
