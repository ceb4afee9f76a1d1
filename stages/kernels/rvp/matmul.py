"""BATCH_MATMUL of int8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.kernels.matmul import Matmul8, MatrixTile

if TYPE_CHECKING:
    from stages.targets.spec import Target


class RvpMatmul(Matmul8):
    """Four rows times four units with SMAQA."""

    name = "rvp.matmul_s8"
    function = "rvp_matmul_s8"
    prices = (1.7, 14.0, 3.5)

    def tile(self, target: Target) -> MatrixTile:
        return MatrixTile(4, 4, target.word_bits // 8)
