"""Functions of one 8-bit value by table, four at a time."""

from typing import Any

from stages.backends.kernels.byte_table import ByteTable
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class Table(ByteTable):
    """Table lookups with independent loads."""

    name = "arm_dsp.table"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("table.S",)
    function = "arm_dsp_table"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 12 per four elements, 2 per iteration of 16, 30 overhead."""
        return 3.13 * view.outputs[0].elements + 30
