"""AVERAGE_POOL_2D and MAX_POOL_2D of NHWC images by rows."""

from typing import ClassVar

from stages.backends.kernels.pool_rows import PoolRows
from stages.backends.targets.spec import Target


class VectorPoolRows(PoolRows):
    """Pooling by rows, with vectors along the rows of the image."""

    name = "rvv.pool_rows"
    row_alignment = 1
    family = "rvv"
    sources = ("pool_rows.c", "pool_lines.S")
    headers: ClassVar[tuple[str, ...]] = ("rvv_pool_rows.h",)
    prices = (5.0, 5.0, 5.0, 6.0)

    def lanes_of(self, target: Target) -> tuple[int, int]:
        assert target.vlen is not None, "KernelFolder.needs"
        return target.vlen, target.vlen // 2
