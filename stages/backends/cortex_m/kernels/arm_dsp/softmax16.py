"""SOFTMAX of int16 rows."""

from stages.backends.kernels.softmax16 import Softmax16


class ArmSoftmax16(Softmax16):
    """SMMULR scales differences, SMLATB interpolates."""

    name = "arm_dsp.softmax_s16"
    function = "arm_dsp_softmax_s16"
    prices = (29.5, 100.0)
