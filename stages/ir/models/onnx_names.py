"""The values of an ONNX graph that the tensors of the imported TFLite file represent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LOWERED = 128
"""Difference between the uint8 values of ONNX and the int8 tensors that represent them."""


@dataclass(frozen=True)
class Traced:
    """The ONNX value that a tensor represents.

    name   of the value
    base   its shape
    order  order of its axes in the tensor
    """

    name: str
    base: tuple[int, ...]
    order: tuple[int, ...]

    def laid(self, array: Array, dtype: str) -> Array:
        """Return ONNX Runtime's array in the tensor's axis order and `dtype`."""
        permuted = array.reshape(self.base).transpose(self.order)
        if permuted.dtype == np.uint8 and dtype == "int8":
            permuted = (permuted.astype(np.int16) - LOWERED).astype(np.int8)
        return np.ascontiguousarray(permuted)

    def original(self, array: Array, dtype: str) -> Array:
        """Return the tensor's array in ONNX' shape `base` and `dtype`."""
        permuted = array.reshape([self.base[axis] for axis in self.order]).transpose(np.argsort(self.order))
        if permuted.dtype == np.int8 and dtype == "uint8":
            permuted = (permuted.astype(np.int16) + LOWERED).astype(np.uint8)
        return np.ascontiguousarray(permuted)


def names_to_json(names: Mapping[int, Traced]) -> str:
    """Return the names as JSON, one line per tensor."""
    lines = ",\n".join(f' "{index}": {json.dumps(asdict(names[index]))}' for index in sorted(names))
    return f"{{\n{lines}\n}}\n"


def names_from_json(text: str) -> dict[int, Traced]:
    """Return the names from the JSON of `names_to_json`."""
    return {
        int(index): Traced(entry["name"], tuple(entry["base"]), tuple(entry["order"]))
        for index, entry in json.loads(text).items()
    }
