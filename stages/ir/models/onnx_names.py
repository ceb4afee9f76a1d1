"""The values of an ONNX graph that the tensors of the imported TFLite file represent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from stages.ir.arrays import Array

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


@dataclass(frozen=True)
class OnnxNetwork:
    """An ONNX network in an imported TFLite file, alone or as a part of a chain.

    file       name of the ONNX file in import's artifact
    operators  number of its first operator in the TFLite file, and of the one after its last
    inputs     tensor numbers, as outputs
    names      ONNX values of tensors, by number
    """

    file: str
    operators: tuple[int, int]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    names: Mapping[int, Traced]

    def moved(self, file: str, operators: int, places: Mapping[int, int]) -> OnnxNetwork:
        """Return the network in another TFLite file: `operators` later, with tensors at `places`."""
        start, end = self.operators
        return OnnxNetwork(
            file,
            (start + operators, end + operators),
            tuple(places[index] for index in self.inputs),
            tuple(places[index] for index in self.outputs),
            {places[index]: traced for index, traced in self.names.items()},
        )


def networks_to_json(networks: Sequence[OnnxNetwork]) -> str:
    """Return the networks as JSON."""
    return json.dumps([asdict(network) for network in networks], indent=1) + "\n"


def networks_from_json(text: str) -> list[OnnxNetwork]:
    """Return the networks from the JSON of `networks_to_json`."""
    networks = []
    for entry in json.loads(text):
        names = {
            int(index): Traced(traced["name"], tuple(traced["base"]), tuple(traced["order"]))
            for index, traced in entry["names"].items()
        }
        first, end = entry["operators"]
        networks.append(OnnxNetwork(entry["file"], (first, end), (*entry["inputs"],), (*entry["outputs"],), names))
    return networks
