"""Inputs, outputs and traces of every inference in the simulator's artifact, as arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from stages.base import StageError
from stages.ir.arrays import Array
from stages.ir.packed import as_in_file, unpack
from stages.ir.tensor_layout import LOGICAL, Layout

HEADER_BYTES = 24  # header of inputs.bin: four uint32 and a uint64, see docs/maintainers/contracts.md


@dataclass(frozen=True)
class Port:
    """An input, an output or a trace. `shape` is logical, `layout` is the order in memory.

    layer and tflite_index are -1 for inputs and outputs, and for tensors that the imported file does not have.
    `added` is the offset of the integers in memory from those of the file. `channels` selects from the file's last
    axis; None: all.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    layout: Layout = LOGICAL
    layer: int = -1
    tflite_index: int = -1
    added: int = 0
    channels: tuple[int, ...] | None = None

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return self.layout.bytes(self.shape, 8 * np.dtype(self.dtype).itemsize)

    def array(self, raw: Array) -> Array:
        """Return these bytes as an array in logical order, with the integers of the imported file."""
        values = raw if self.layout.bits else raw.view(np.dtype(self.dtype))
        return as_in_file(unpack(values, self.layout, self.shape, dtype=self.dtype), self.added)

    def of_file(self, values: Array) -> Array:
        """Return the expected value, from the file's tensor or from its selected channels."""
        is_whole = self.channels is not None and values.size != prod(self.shape)
        return (values[..., self.channels] if is_whole else values).reshape(self.shape)


_FIRST = Port("first of a sequence", "uint32", (1,))


class _Table:
    """A file of records; each has the values of all ports in order.

    `calls` of model.json: the values come in the order of the calls, in parts if a layer runs by rows.
    """

    def __init__(self, data: Array, ports: Sequence[Port], file_name: str, calls: Sequence[Sequence[int]] = ()) -> None:
        self.data, self.ports, self.calls = data, ports, calls
        self.record = sum(port.bytes for port in ports)
        self.count = len(data) // self.record if self.record else 0
        if self.record and len(data) % self.record:
            raise StageError(
                f"{file_name} has {len(data)} bytes, not a multiple of {self.record}, the size of one inference",
                hint="The simulator's artifact belongs to another model, or the firmware stopped early.",
            )

    def row(self, index: int) -> list[Array]:
        """Return the values of all ports in the record of an inference."""
        if self.calls:
            return self._joined(index * self.record)
        position, values = index * self.record, []
        for port in self.ports:
            values.append(port.array(self.data[position : position + port.bytes]))
            position += port.bytes
        return values

    def _joined(self, position: int) -> list[Array]:
        """Return the values of a record in the order of calls."""
        parts: list[list[Array]] = [[] for _ in self.ports]
        of_layer: dict[int, list[int]] = {}
        for number, port in enumerate(self.ports):
            of_layer.setdefault(port.layer, []).append(number)
        for layer, *rows in self.calls:
            for number in of_layer.get(layer, []):
                size = rows[0] if rows else self.ports[number].bytes
                parts[number].append(self.data[position : position + size])
                position += size
        return [port.array(np.concatenate(part)) for port, part in zip(self.ports, parts, strict=True)]


@dataclass
class Records:
    """The model's name and layers (of model.json), and tables of inputs, outputs and traces.

    `names` and `labels` are from inputs.json: the name of each inference's input, and its class if known.
    With `stateful` the network has state: a record of `inputs` begins with whether it is the first of a sequence.
    """

    name: str
    layers: list[dict[str, Any]]
    inputs: _Table
    outputs: _Table
    traces: _Table
    names: list[str]
    labels: list[int | None] | None
    stateful: bool = False

    @classmethod
    def read(cls, emitted: Path, simulated: Path) -> Records:
        """Read the artifacts of emit and simulate. Raises StageError if they do not match."""
        model = json.loads((emitted / "model.json").read_text())
        facts = json.loads((simulated / "inputs.json").read_text())
        inputs, outputs = ([_port(entry) for entry in model[key]] for key in ("inputs", "outputs"))
        traces = [_port(entry, entry["tensor"]) for entry in model["traces"]]
        stateful = "state" in model
        fed = _Table(_bytes(simulated / "inputs.bin")[HEADER_BYTES:], [_FIRST] * stateful + inputs, "inputs.bin")
        wrote = _Table(_bytes(simulated / "outputs.bin"), outputs, "outputs.bin")
        traced = _Table(_bytes(simulated / "trace.bin"), traces, "trace.bin", model.get("calls", ()))
        count = fed.count
        if wrote.count != count or traced.count not in (0, count):
            raise StageError(
                f"the firmware got {count} inferences, but wrote {wrote.count} outputs and {traced.count} traces"
            )
        names = list(facts.get("names") or [f"inference {i}" for i in range(count)])
        return cls(model["name"], model["layers"], fed, wrote, traced, names, facts.get("labels"), stateful)

    def inputs_of(self, index: int) -> list[Array]:
        """Return the inputs of an inference."""
        return self.inputs.row(index)[self.stateful :]

    def is_first(self, index: int) -> bool:
        """Return whether the network's state is reset before this inference."""
        return self.stateful and bool(self.inputs.row(index)[0])


def _port(entry: dict[str, Any], name: str = "") -> Port:
    index, layer = entry.get("tflite_index"), entry.get("layer")
    return Port(
        name=name or entry["name"],
        dtype=entry["dtype"],
        shape=tuple(entry["shape"]),
        layout=Layout(entry.get("layout") or ""),
        layer=-1 if layer is None else layer,
        tflite_index=-1 if index is None else index,
        added=entry.get("added", 0),
        channels=tuple(entry["channels"]) if entry.get("channels") else None,
    )


def _bytes(path: Path) -> Array:
    """Return the file as a memory map; no bytes if it does not exist."""
    if not path.exists() or path.stat().st_size == 0:
        return np.zeros(0, dtype=np.uint8)
    return np.memmap(path, dtype=np.uint8, mode="r")
