"""AVERAGE_POOL_2D and MAX_POOL_2D of NHWC images by rows."""

from typing import ClassVar

from stages.backends.kernels.pool_rows import PoolRows


class MvePoolRows(PoolRows):
    """Pooling by rows, 16 maxima or 8 sums at a time."""

    name = "mve.pool_rows"
    row_alignment = 1
    family = "mve"
    sources = ("pool_rows.c",)
    headers: ClassVar[tuple[str, ...]] = ("mve_pool_rows.h",)
    lanes = (16, 8)
    prices = (2.0, 2.0, 4.0, 6.0)
