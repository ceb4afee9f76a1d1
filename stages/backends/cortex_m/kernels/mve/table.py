"""Functions of one 8-bit value by gather loads from a table."""

from typing import Any

from stages.backends.kernels.byte_table import ByteTable
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class Table(ByteTable):
    """Table lookups, 16 elements at a time."""

    name = "mve.table"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("table.S",)
    function = "mve_table"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 4 per 16 elements."""
        return 4.0 * -(-view.outputs[0].elements // 16) + 12
