"""Compare the outputs of an incremental network with the network over the whole window."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stages.base import StageError
from stages.ir.reference.partitions import reference_of
from stages.support.messages import escape
from stages.verify.compare import difference
from stages.verify.records import Array, Port

_WINDOW = "window.tflite"  # of import


class WholeWindow:
    """The network over the whole window, run by the reference on the frames of a sequence.

    compared  inferences that were compared
    wrong     the error about the first output that differs, or None
    """

    def __init__(self, imported: Path, tolerance: float) -> None:
        facts = json.loads((imported / "import.json").read_text())["incremental"]
        self.frames, self.window, self._axis = facts["frames"], facts["window"], facts["axis"]
        self._reference = reference_of((imported / _WINDOW).read_bytes())
        self._tolerance = tolerance
        self.compared = 0
        self.wrong: StageError | None = None
        self.reset()

    def reset(self) -> None:
        """Begin a sequence: the window holds zeros."""
        (source,) = self._reference.inputs
        zero = int(source.zero_point[0]) if source.zero_point.size else 0
        self._rows = np.full(source.shape, zero, source.dtype)

    def inference(self, name: str, inputs: Sequence[Array], outputs: Sequence[tuple[Port, Array]]) -> None:
        """Move the window by the new frames and compare. `name` is the input's, `outputs` are the firmware's."""
        (frames,), size = inputs, self._rows.shape[self._axis]
        new = frames.reshape(*self._rows.shape[: self._axis], -1, *self._rows.shape[self._axis + 1 :])
        rows = np.concatenate([self._rows, new], self._axis)
        self._rows = np.take(rows, range(rows.shape[self._axis] - size, rows.shape[self._axis]), self._axis)
        self.compared += 1
        for (port, ours), theirs in zip(outputs, self._reference.run([self._rows]), strict=True):
            mismatch = difference(ours, theirs.reshape(port.shape))
            if mismatch is None or (port.dtype == "float32" and mismatch.relative <= self._tolerance):
                continue
            self.wrong = self.wrong or StageError(
                f"output {escape.quoted(port.name)} differs from the network over the whole window, on {name}:\n"
                f"  {mismatch.elements} of {mismatch.of} elements, by at most {mismatch.max_abs:.6g}",
                hint="Report this as a bug of `incremental`, with the model file.",
            )

    @property
    def described(self) -> dict[str, int]:
        """The entry in verify.json."""
        return {"frames": self.frames, "window": self.window, "inputs": self.compared}


def whole_window(imported: Path, tolerance: float) -> WholeWindow | None:
    """Return the check of an incremental network; None for other networks."""
    return WholeWindow(imported, tolerance) if (imported / _WINDOW).exists() else None
