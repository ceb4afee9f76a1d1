"""What the simulator left: inputs, outputs and traces of every inference, as arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.base import StageError
from stages.ir.graph.packed import as_in_file, unpack
from stages.ir.tensor_layout import LOGICAL, Layout

Array = npt.NDArray[Any]

HEADER_BYTES = 24  # of inputs.bin: four uint32 and a uint64, see docs/maintainers/contracts.md


@dataclass(frozen=True)
class Port:
    """An input, an output or a trace. `shape` is logical, `layout` says how it lies in memory.

    layer and tflite_index are -1 for inputs and outputs, and for tensors that the imported file does not have. The
    integers in memory are larger than those of the file by `added`. `channels` are those of the file's last axis that
    it has, None: all.
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
        return self.layout.bytes(self.shape, 8 * np.dtype(self.dtype).itemsize)

    def array(self, raw: Array) -> Array:
        """These bytes as an array in logical order, with the integers of the imported file."""
        values = raw if self.layout.bits else raw.view(np.dtype(self.dtype))
        return as_in_file(unpack(values, self.layout, self.shape, dtype=self.dtype), self.added)

    def of_file(self, values: Array) -> Array:
        """What it should be, of the file's tensor, or of one that has its channels only."""
        is_whole = self.channels is not None and values.size != prod(self.shape)
        return (values[..., self.channels] if is_whole else values).reshape(self.shape)


_FIRST = Port("first of a sequence", "uint32", (1,))


class _Table:
    """A file of records, each of all ports one after the other."""

    def __init__(self, data: Array, ports: Sequence[Port], what: str) -> None:
        self.data, self.ports = data, ports
        self.record = sum(port.bytes for port in ports)
        self.count = len(data) // self.record if self.record else 0
        if self.record and len(data) % self.record:
            raise StageError(
                f"{what} has {len(data)} bytes, which is no multiple of the {self.record} of one inference",
                hint="The simulator's artifact does not belong to this model, or the firmware stopped early.",
            )

    def row(self, index: int) -> list[Array]:
        position, found = index * self.record, []
        for port in self.ports:
            found.append(port.array(self.data[position : position + port.bytes]))
            position += port.bytes
        return found


@dataclass
class Records:
    """The model's name and layers (of model.json), and tables of inputs, outputs and traces.

    names and labels are those of inputs.json: what each inference was fed, and its class, when known. `kept` tells that
    the network keeps state: `inputs` has, before the inputs of each inference, whether it is the first of a sequence.
    """

    name: str
    layers: list[dict[str, Any]]
    inputs: _Table
    outputs: _Table
    traces: _Table
    names: list[str]
    labels: list[int | None] | None
    kept: bool = False

    @classmethod
    def read(cls, emitted: Path, simulated: Path) -> Records:
        """From the artifacts of emit and simulate. StageError when they do not fit together."""
        model = json.loads((emitted / "model.json").read_text())
        facts = json.loads((simulated / "inputs.json").read_text())
        inputs, outputs = ([_port(entry) for entry in model[key]] for key in ("inputs", "outputs"))
        traces = [_port(entry, entry["tensor"]) for entry in model["traces"]]
        kept = "state" in model
        fed = _Table(_bytes(simulated / "inputs.bin")[HEADER_BYTES:], [_FIRST] * kept + inputs, "inputs.bin")
        wrote = _Table(_bytes(simulated / "outputs.bin"), outputs, "outputs.bin")
        traced = _Table(_bytes(simulated / "trace.bin"), traces, "trace.bin")
        count = fed.count
        if wrote.count != count or traced.count not in (0, count):
            raise StageError(
                f"the firmware was fed {count} inferences and wrote {wrote.count} outputs, {traced.count} traces"
            )
        names = list(facts.get("names") or [f"inference {i}" for i in range(count)])
        return cls(model["name"], model["layers"], fed, wrote, traced, names, facts.get("labels"), kept)

    def given(self, index: int) -> list[Array]:
        """The inputs of an inference."""
        return self.inputs.row(index)[self.kept :]

    def is_first(self, index: int) -> bool:
        """Whether the network's state is reset before this inference."""
        return self.kept and bool(self.inputs.row(index)[0])


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
    """The file as bytes, mapped and not read; no bytes when there is no file."""
    if not path.exists() or path.stat().st_size == 0:
        return np.zeros(0, dtype=np.uint8)
    return np.memmap(path, dtype=np.uint8, mode="r")
