"""Functions of one 8-bit number, four at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.byte_table import ByteTable

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class Table(ByteTable):
    """Loads beside each other, of which none waits for the one before it."""

    name = "arm_dsp.table"
    estimate_error = 1.25
    sources = ("table.S",)
    headers: ClassVar[tuple[str, ...]] = ("table.h",)
    function = "arm_dsp_table"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """12 instructions for four elements and 2 for a turn of 16; 30 around."""
        return 3.13 * view.outputs[0].elements + 30
