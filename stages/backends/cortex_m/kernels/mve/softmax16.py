"""SOFTMAX of int16 rows."""

from stages.backends.kernels.softmax16 import Softmax16


class MveSoftmax16(Softmax16):
    """Softmax of four elements at a time; table lines are gathered."""

    name = "mve.softmax_s16"
    function = "mve_softmax_s16"
    prices = (6.2, 105.0)
