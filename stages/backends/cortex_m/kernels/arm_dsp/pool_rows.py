"""AVERAGE_POOL_2D and MAX_POOL_2D of NHWC images by rows."""

from typing import ClassVar

from stages.backends.kernels.pool_rows import PoolRows


class ArmPoolRows(PoolRows):
    """Pooling by rows, four maxima or sums at a time."""

    name = "arm_dsp.pool_rows"
    row_alignment = 1
    family = "arm_dsp"
    sources = ("pool_rows.c",)
    headers: ClassVar[tuple[str, ...]] = ("arm_dsp_pool_rows.h",)
    lanes = (4, 4)
    prices = (3.4, 5.0, 9.0, 9.0)
