"""SVDF on int8."""

from stages.backends.kernels.svdf import Svdf8
from stages.backends.targets.spec import Target


class MveSvdf(Svdf8):
    """SVDF in vectors: sixteen elements of a row, eight steps of a memory."""

    name = "mve.svdf_s8"
    estimate_error = 1.5
    function = "mve_svdf_s8"
    prices = (0.2, 0.7, 25.0, 15.0)

    def chunk(self, target: Target) -> int:
        return 16
