"""BATCH_MATMUL of int8."""

from stages.backends.kernels.matmul import Matmul8, MatrixTile
from stages.backends.targets.spec import Target


class ArmMatmul(Matmul8):
    """Two rows times two units with SMLAD on int16."""

    name = "arm_dsp.matmul_s8"
    estimate_error = 1.25
    function = "arm_dsp_matmul_s8"
    prices = (3.0, 14.0, 3.5)

    def tile(self, target: Target) -> MatrixTile:
        return MatrixTile(2, 2, 4, wide=2)
