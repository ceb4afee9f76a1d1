"""SVDF on int8."""

from stages.backends.kernels.svdf import Svdf8
from stages.backends.targets.spec import Target


class ArmSvdf(Svdf8):
    """SVDF, four elements of a row or two steps of a memory per SMLAD pair."""

    name = "arm_dsp.svdf_s8"
    estimate_error = 1.25
    function = "arm_dsp_svdf_s8"
    wide = 2
    prices = (1.3, 3.5, 45.0, 40.0)

    def chunk(self, target: Target) -> int:
        return 4
