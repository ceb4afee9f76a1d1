"""BATCH_MATMUL of int8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.kernels.matmul import Matmul8, MatrixTile

if TYPE_CHECKING:
    from stages.targets.spec import Target


class MveMatmul(Matmul8):
    """A row times four units, sixteen elements at a time."""

    name = "mve.matmul_s8"
    function = "mve_matmul_s8"
    prices = (2.9, 5.0, 2.0)

    def tile(self, target: Target) -> MatrixTile:
        return MatrixTile(2, 4, 16)
