"""Compare an incremental network with the network over the whole window."""

import json
from collections.abc import Sequence
from pathlib import Path

from stages.base import StageError
from stages.ir.arrays import Array
from stages.ir.reference.onnx_runtime import imported_reference
from stages.support.messages import escape
from stages.verify.compare import difference
from stages.verify.records import Port

_WINDOW = "window.tflite"  # of import


class WholeWindow:
    """The network over the whole window, run by the reference on the frames of a sequence.

    compared  inferences that were compared
    wrong     the error about the first output that differs, or None
    """

    def __init__(self, imported: Path, tolerance: float) -> None:
        self._facts = json.loads((imported / "import.json").read_text())["incremental"]
        self._reference, self._tolerance = imported_reference(imported / _WINDOW, "window"), tolerance
        self.compared = 0
        self.wrong: StageError | None = None

    def reset(self) -> None:
        """Begin a sequence: the window holds zeros."""
        self._reference.reset()

    def inference(self, name: str, inputs: Sequence[Array], outputs: Sequence[tuple[Port, Array]]) -> None:
        """Run the network and compare. `name` is the input's, `outputs` are the firmware's."""
        self.compared += 1
        for (port, ours), theirs in zip(outputs, self._reference.run(inputs), strict=True):
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
        return {**self._facts, "inputs": self.compared}


def whole_window(imported: Path, tolerance: float) -> WholeWindow | None:
    """Return the check of an incremental network; None for other networks."""
    return WholeWindow(imported, tolerance) if (imported / _WINDOW).exists() else None
