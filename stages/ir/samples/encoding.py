"""Samples in files whose numbers stand otherwise than in the network: what these hold, and what that stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from stages.ir.samples.files import Inference, Port, clipped, quantized

if TYPE_CHECKING:
    import numpy as np

    from stages.support.options.encoding import Encoding

_BYTES = {"int8": 1, "uint8": 1, "int16": 2, "float32": 4}


def stored_as(port: Port, encoding: Encoding) -> Port:
    """The port as the file has it: without a scale, of the encoding's type."""
    size = _BYTES[encoding.dtype] * prod(port["shape"])
    return {"name": port["name"], "dtype": encoding.dtype, "shape": port["shape"], "bytes": size, "encoded": True}


def decoded(data: bytes, ports: Sequence[Port], encoding: Encoding | None) -> Iterator[np.ndarray]:
    """The inputs of one inference in float32; `ports` as the file has them."""
    import numpy as np

    at = 0
    for port in ports:
        stored = np.frombuffer(data[at : at + int(port["bytes"])], port["dtype"]).reshape(port["shape"])
        at += int(port["bytes"])
        if encoding is not None:
            stored = (stored.astype(np.float64) - encoding.zero_point) * encoding.scale
        yield stored.astype(np.float32)


def fed(one: Inference, ports: Sequence[Port], encoding: Encoding) -> Inference:
    """An encoded inference as the network is given it: real numbers, or their integers by the input's scale.

    `ports` are the network's.
    """
    stored = [stored_as(port, encoding) for port in ports]
    given, reals, outside = b"", 0, 0
    for array, port in zip(decoded(one.data, stored, encoding), ports, strict=True):
        if port.get("scale"):
            given += quantized(one.name, array, port).tobytes()
            reals, outside = reals + array.size, outside + clipped(array, port)
        else:
            given += array.astype(port["dtype"]).tobytes()
    return replace(one, data=given, reals=reals, outside=outside)
