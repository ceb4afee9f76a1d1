"""Test input and expected output from the simulator's artifact, as C arrays."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.base import StageError

HEADER_BYTES = 24  # header of inputs.bin: four uint32 and a uint64, see docs/maintainers/contracts.md
#: Largest number of inferences in the example of a network with state.
MOST_STEPS = 4
_PER_LINE = 16


@dataclass(frozen=True)
class Sample:
    """A test of the network: name, and flat values of each input and output, by step."""

    name: str
    inputs: Sequence[Sequence[np.ndarray]]
    outputs: Sequence[Sequence[np.ndarray]]

    @property
    def steps(self) -> int:
        """Number of consecutive inferences; 1 without state."""
        return len(self.inputs)


def sample(simulated: Path, model: Mapping[str, Any], skipped: Sequence[str] = ()) -> Sample:
    """Return the first inference, preferably from a file.

    With state, return the start of its sequence.
    `skipped` are names of inferences that verify could not check. Raises StageError if there are no others.
    """
    described = json.loads((simulated / "inputs.json").read_text())
    names, is_sampled = described["names"], described["random"]
    inputs, firsts = _inputs(simulated, model)
    outputs = _records((simulated / "outputs.bin").read_bytes(), model["outputs"])
    begins = [index for index, is_first in enumerate(firsts) if is_first and names[index] not in skipped]
    if not begins:
        raise StageError("no inference was verified, so the example has no expected output")
    start = next((index for index in begins if not is_sampled[index]), begins[0])
    end = next((index for index in range(start + 1, len(firsts)) if firsts[index]), len(firsts))
    verified_end = next((index for index in range(start, end) if names[index] in skipped), end)
    steps = range(start, min(verified_end, start + MOST_STEPS))
    return Sample(names[start], [inputs[step] for step in steps], [outputs[step] for step in steps])


def _inputs(simulated: Path, model: Mapping[str, Any]) -> tuple[list[list[np.ndarray]], list[bool]]:
    """Return the inputs of each inference, and whether it is the first of a sequence."""
    content = (simulated / "inputs.bin").read_bytes()[HEADER_BYTES:]
    if "state" not in model:
        inputs = _records(content, model["inputs"])
        return inputs, [True] * len(inputs)
    records = _records(content, [{"bytes": 4, "dtype": "uint32"}, *model["inputs"]])
    return [record[1:] for record in records], [bool(record[0][0]) for record in records]


def _records(content: bytes, ports: Sequence[Mapping[str, Any]]) -> list[list[np.ndarray]]:
    size = sum(port["bytes"] for port in ports)
    records = []
    for start in range(0, len(content), size):
        record, offset = [], start
        for port in ports:
            record.append(np.frombuffer(content[offset : offset + port["bytes"]], np.dtype(port["dtype"])))
            offset += port["bytes"]
        records.append(record)
    return records


def rows(values: np.ndarray) -> list[str]:
    """Return the lines of a C initializer: `1, -2, 3`."""
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
