"""SOFTMAX along dense rows."""

from typing import Any

from stages.backends.kernels.softmax import RowSoftmax
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class Softmax(RowSoftmax):
    """Softmax one row at a time; exponentials of four elements are gathered from a table."""

    name = "mve.softmax"
    sources = ("softmax.c",)
    function = "mve_softmax"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 4.2 per element, 120 per row."""
        elements = view.outputs[0].elements
        return 4.2 * elements + 120 * elements / view.outputs[0].shape[-1]
