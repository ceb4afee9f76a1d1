"""Scores, decisions, features of each step of recordings, from simulator records."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.ir.arrays import Array
from stages.ir.tensor_layout import LOGICAL
from stages.verify.records import Port, Records

MOST_CLASSES = 12  # an output with more elements is no score, unless `classes` names them
DECISION = "detected"  # end of the name of an output with decisions


@dataclass(frozen=True)
class Recording:
    """A WAV file of the run. `first` is its first inference, `labels` are those of inputs.json."""

    name: str
    first: int
    steps: int
    labels: Sequence[Mapping[str, Any]]


class Series:
    """The steps of all recordings.

    rate, step, window  samples per second, of a step, and of an input
    score, decision     names of the outputs, '' if there is none
    classes             elements of the score, or of the decision
    features            name of the tensor that is drawn over time, '' if there is none: the last of `first_part`, such
                        as a front end, or an output that is no score
    """

    def __init__(
        self, emitted: Path, simulated: Path, facts: Mapping[str, Any], names: Sequence[str] = (), first_part: str = ""
    ) -> None:
        self._records = Records.read(emitted, simulated)
        self.rate, self.step, self.window = facts["sample_rate"], facts["step"], facts["window"]
        self.labelled = bool(facts["labelled"])
        self.recordings = [
            Recording(**{key: file[key] for key in ("name", "first", "steps", "labels")}) for file in facts["files"]
        ]
        outputs = json.loads((emitted / "model.json").read_text())["outputs"]
        decided = [number for number, port in enumerate(outputs) if port["name"].lower().endswith(DECISION)]
        others = [number for number in range(len(outputs)) if number not in decided[:1]]
        scored = [
            number for number in others if prod(outputs[number]["shape"]) in (*range(1, MOST_CLASSES + 1), len(names))
        ]
        self._outputs = outputs
        self._decision, self._score = (next(iter(numbers), None) for numbers in (decided, scored))
        self.decision, self.score = (
            "" if number is None else str(outputs[number]["name"]) for number in (self._decision, self._score)
        )
        shown = self._score if self._score is not None else self._decision
        self.classes = 0 if shown is None else prod(outputs[shown]["shape"])
        self._features = self._feature_port([number for number in others if number not in scored], first_part)
        self.features = "" if self._features is None else self._features[1].name

    def _feature_port(self, outputs: Sequence[int], first_part: str) -> tuple[Any, Port] | None:
        """Return table and port of the features."""
        traces, layers = self._records.traces, {layer["index"]: layer["name"] for layer in self._records.layers}
        if traces.count and first_part:
            for port in reversed(traces.ports):
                named = (port.name, layers.get(port.layer, ""))
                if any(name.startswith(f"{first_part}/") for name in named) and prod(port.shape) > 1:
                    return traces, port
        return next(((self._records.outputs, self._records.outputs.ports[number]) for number in outputs), None)

    def times(self, recording: Recording) -> npt.NDArray[np.float64]:
        """Return the end of each step's samples in seconds, float64[steps]."""
        ends = np.arange(recording.steps, dtype=np.float64) * self.step + self.window
        return np.asarray(ends / self.rate)

    def seconds(self, recording: Recording) -> float:
        """Return the length of the processed audio."""
        samples: int = (recording.steps - 1) * self.step + self.window
        return samples / float(self.rate)

    def scores(self, recording: Recording) -> npt.NDArray[np.float64] | None:
        """Return the scores as real numbers, float64[steps, classes]; None without a score."""
        return None if self._score is None else self._real(recording, self._score)

    def decisions(self, recording: Recording) -> npt.NDArray[np.bool_] | None:
        """Return the network's decisions, bool[steps, elements]; None without such an output."""
        if self._decision is None:
            return None
        values = self._values(self._records.outputs, self._records.outputs.ports[self._decision], recording)
        return np.asarray(values.reshape(recording.steps, -1) != 0)

    def frames(self, recording: Recording) -> Array | None:
        """Return the features, [frames, channels]; None if there are none.

        A step may have several frames.
        """
        if self._features is None:
            return None
        table, port = self._features
        return self._values(table, port, recording).reshape(-1, port.shape[-1])

    def samples(self, recording: Recording) -> Array:
        """Return the samples; those that windows share appear once."""
        port = self._records.inputs.ports[-1]
        windows = self._values(self._records.inputs, port, recording).reshape(recording.steps, -1)
        new = min(self.step, self.window)
        return np.concatenate([windows[0, : self.window - new], windows[:, self.window - new :].reshape(-1)])

    def _real(self, recording: Recording, output: int) -> npt.NDArray[np.float64]:
        values = self._values(self._records.outputs, self._records.outputs.ports[output], recording)
        real, facts = values.reshape(recording.steps, -1).astype(np.float64), self._outputs[output]
        return (real - int(facts["zero_point"])) * float(facts["scale"]) if facts.get("scale") else real

    @staticmethod
    def _values(table: Any, port: Port, recording: Recording) -> Array:
        """Return the values of a port in all steps of a recording, [steps, *shape]."""
        number = next(at for at, other in enumerate(table.ports) if other is port)
        if table.calls:
            steps = range(recording.first, recording.first + recording.steps)
            return np.stack([table.row(step)[number] for step in steps])
        start = sum(other.bytes for other in table.ports[:number])
        records = table.data.reshape(-1, table.record)[recording.first : recording.first + recording.steps]
        rows = records[:, start : start + port.bytes]
        if port.layout == LOGICAL and not port.added:  # faster than one by one
            return np.ascontiguousarray(rows).view(np.dtype(port.dtype)).reshape(-1, *port.shape)
        return np.stack([port.array(row) for row in rows])
