"""One input with its output, from what the simulator left, as C arrays for the example of an export."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.base import StageError

HEADER_BYTES = 24  # of inputs.bin: four uint32 and a uint64, see docs/maintainers/contracts.md
#: Inferences of a network with state that the example runs, at most.
MOST_STEPS = 4
_PER_LINE = 16


@dataclass(frozen=True)
class Sample:
    """A test of the network: what it is called, and for each step the values of each input and output, flat."""

    name: str
    inputs: Sequence[Sequence[np.ndarray]]
    outputs: Sequence[Sequence[np.ndarray]]

    @property
    def steps(self) -> int:
        """Inferences after each other: more than one where the network keeps state."""
        return len(self.inputs)


def sample(simulated: Path, model: Mapping[str, Any], skipped: Sequence[str] = ()) -> Sample:
    """The first inference from a file, else the first; of a network with state the beginning of that sequence.

    `skipped` are names of inferences that verify could not judge. Raises StageError where no other is left.
    """
    described = json.loads((simulated / "inputs.json").read_text())
    names, drawn = described["names"], described["drawn"]
    inputs, firsts = _inputs(simulated, model)
    outputs = _records((simulated / "outputs.bin").read_bytes(), model["outputs"])
    begins = [index for index, first in enumerate(firsts) if first and names[index] not in skipped]
    if not begins:
        raise StageError("no inference was judged: the example has no expected output")
    start = next((index for index in begins if not drawn[index]), begins[0])
    end = next((index for index in range(start + 1, len(firsts)) if firsts[index]), len(firsts))
    judged = next((index for index in range(start, end) if names[index] in skipped), end)
    steps = range(start, min(judged, start + MOST_STEPS))
    return Sample(names[start], [inputs[step] for step in steps], [outputs[step] for step in steps])


def _inputs(simulated: Path, model: Mapping[str, Any]) -> tuple[list[list[np.ndarray]], list[bool]]:
    """The inputs of each inference, and whether it is the first of a sequence."""
    content = (simulated / "inputs.bin").read_bytes()[HEADER_BYTES:]
    if "state" not in model:
        found = _records(content, model["inputs"])
        return found, [True] * len(found)
    records = _records(content, [{"bytes": 4, "dtype": "uint32"}, *model["inputs"]])
    return [record[1:] for record in records], [bool(record[0][0]) for record in records]


def _records(content: bytes, ports: Sequence[Mapping[str, Any]]) -> list[list[np.ndarray]]:
    size = sum(port["bytes"] for port in ports)
    found = []
    for start in range(0, len(content), size):
        record, at = [], start
        for port in ports:
            record.append(np.frombuffer(content[at : at + port["bytes"]], np.dtype(port["dtype"])))
            at += port["bytes"]
        found.append(record)
    return found


def rows(values: np.ndarray) -> list[str]:
    """Lines of an initializer: `1, -2, 3`."""
    texts = [_literal(value) for value in values.reshape(-1)]
    return [", ".join(texts[start : start + _PER_LINE]) for start in range(0, len(texts), _PER_LINE)]


def _literal(value: Any) -> str:
    kind = value.dtype.kind
    if kind == "b":
        return str(int(value))
    if kind == "f":
        if not np.isfinite(value):
            return "(0.0f / 0.0f)" if np.isnan(value) else f"({'-' if value < 0 else ''}1.0f / 0.0f)"
        text = f"{value:.9g}"
        return f"{text if '.' in text or 'e' in text else f'{text}.0'}f"
    if value.dtype.itemsize == 8:
        return "(-9223372036854775807LL - 1)" if int(value) == -(2**63) else f"{int(value)}LL"
    if value.dtype.itemsize == 4 and int(value) == -(2**31):
        return "(-2147483647 - 1)"
    return str(int(value))
