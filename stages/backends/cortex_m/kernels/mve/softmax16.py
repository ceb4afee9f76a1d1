"""SOFTMAX of int16 rows."""

from stages.backends.kernels.softmax16 import Softmax16


class MveSoftmax16(Softmax16):
    """Four elements at a time; the lines of the table are gathered."""

    name = "mve.softmax_s16"
    function = "mve_softmax_s16"
    prices = (6.2, 105.0)
