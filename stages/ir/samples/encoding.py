"""Samples in files with another encoding than the network's input."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from stages.ir.arrays import Array
from stages.ir.samples.files import Inference, Port, clipped, quantized
from stages.support.lazy import np
from stages.support.options.encoding import Encoding

_BYTES = {"int8": 1, "uint8": 1, "int16": 2, "float32": 4}


def stored_as(port: Port, encoding: Encoding) -> Port:
    """Return the port as the file has it: with the encoding's type, without a scale."""
    size = _BYTES[encoding.dtype] * prod(port["shape"])
    return {"name": port["name"], "dtype": encoding.dtype, "shape": port["shape"], "bytes": size, "encoded": True}


def decoded(data: bytes | memoryview, ports: Sequence[Port], encoding: Encoding | None) -> Iterator[Array]:
    """Yield the inputs of one inference in float32; `ports` describe the file's arrays."""
    at = 0
    for port in ports:
        stored = np.frombuffer(data[at : at + int(port["bytes"])], port["dtype"]).reshape(port["shape"])
        at += int(port["bytes"])
        if encoding is not None:
            stored = (stored.astype(np.float64) - encoding.zero_point) * encoding.scale
        yield stored.astype(np.float32)


def in_network_types(inference: Inference, ports: Sequence[Port], encoding: Encoding) -> Inference:
    """Return an encoded inference in the network's types, real numbers quantized.

    ports  the network's inputs
    """
    stored = [stored_as(port, encoding) for port in ports]
    data, reals, outside = b"", 0, 0
    for array, port in zip(decoded(inference.data, stored, encoding), ports, strict=True):
        if port.get("scale"):
            data += quantized(inference.name, array, port).tobytes()
            reals, outside = reals + array.size, outside + clipped(array, port)
        else:
            data += array.astype(port["dtype"]).tobytes()
    return replace(inference, data=data, reals=reals, outside=outside)
