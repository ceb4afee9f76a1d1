"""BATCH_MATMUL of int8."""

from stages.backends.kernels.matmul import Matmul8, MatrixTile
from stages.backends.targets.spec import Target


class DotprodMatmul(Matmul8):
    """Four rows times eight units with SDOT."""

    name = "neon_dotprod.matmul_s8"
    function = "neon_dotprod_matmul_s8"
    prices = (0.45, 4.0, 2.5)

    def tile(self, target: Target) -> MatrixTile:
        return MatrixTile(4, 8, 4)
