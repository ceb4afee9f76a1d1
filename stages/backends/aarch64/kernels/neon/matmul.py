"""BATCH_MATMUL of int8."""

from stages.backends.kernels.matmul import Matmul8, MatrixTile
from stages.backends.targets.spec import Target


class NeonMatmul(Matmul8):
    """Four rows times eight units with SMLAL on int16."""

    name = "neon.matmul_s8"
    function = "neon_matmul_s8"
    prices = (0.45, 4.0, 4.0)

    def tile(self, target: Target) -> MatrixTile:
        return MatrixTile(4, 8, 1, wide=2)
