"""AVERAGE_POOL_2D, MAX_POOL_2D and MEAN over a whole image that comes by bands of rows."""

from typing import ClassVar

from stages.backends.generic.kernels.generic.row_sums import RowSums
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class MveRowSums(RowSums):
    """Bands, 16 channels at a time; the output from the sums in generic C."""

    name = "mve.row_sums"
    sources = ("mve_row_sums.c", "../generic/row_sums.c")
    headers: ClassVar[tuple[str, ...]] = ("mve_row_sums.h", "../generic/row_sums.h")
    prefix = "mve"

    def cost_rows(self, view: LayerView, rows: int, target: Target) -> float:
        """Return instructions, from counts: 10 per 16 channels of a pixel, 5 per 4 of the rest."""
        _, _, width, channels = view.inputs[0].shape
        sixteens, fours = channels // 16, -(-(channels % 16) // 4)
        return float(sixteens * (10 * rows * width + 20) + fours * (5 * rows * width + 18) + 45)
