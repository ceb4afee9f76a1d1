"""Which values of an ONNX graph the tensors of the TFLite file are that import makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LOWERED = 128
"""What int8 tensors are less by than the uint8 values of ONNX that they stand for."""


@dataclass(frozen=True)
class Traced:
    """The ONNX value `name` that a tensor is: as an array of shape `base`, its axes in the order `order`."""

    name: str
    base: tuple[int, ...]
    order: tuple[int, ...]

    def laid(self, array: Array, dtype: str) -> Array:
        """ONNX Runtime's array as the tensor, of `dtype`, has it."""
        made = array.reshape(self.base).transpose(self.order)
        if made.dtype == np.uint8 and dtype == "int8":
            made = (made.astype(np.int16) - LOWERED).astype(np.int8)
        return np.ascontiguousarray(made)

    def original(self, array: Array, dtype: str) -> Array:
        """The other way: the tensor's array as ONNX has it, in shape `base`, of `dtype`."""
        made = array.reshape([self.base[axis] for axis in self.order]).transpose(np.argsort(self.order))
        if made.dtype == np.int8 and dtype == "uint8":
            made = (made.astype(np.int16) + LOWERED).astype(np.uint8)
        return np.ascontiguousarray(made)


def dumped(names: Mapping[int, Traced]) -> str:
    """The names as JSON, a line for each tensor."""
    lines = ",\n".join(f' "{index}": {json.dumps(asdict(names[index]))}' for index in sorted(names))
    return f"{{\n{lines}\n}}\n"


def loaded(text: str) -> dict[int, Traced]:
    """What `dumped` wrote."""
    return {
        int(index): Traced(one["name"], tuple(one["base"]), tuple(one["order"]))
        for index, one in json.loads(text).items()
    }
