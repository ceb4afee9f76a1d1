"""Constant structures of the generic kernels' headers."""

from typing import Any

from stages.backends.kernels.structure import TAPS, Structure
from stages.ir.layers import ROUNDINGS

EPILOGUE = ("zero_point", "low", "high", "single_rounding")

GEMM = Structure("fl_gemm", ("x_row", "y_row", "y_column", "weight_zero_point", *EPILOGUE))
IM2COL = Structure("fl_im2col", ("height", "width", "channels", "pixel", *TAPS, "out_width", "fill", "flip"))
DEPTHWISE = Structure(
    "fl_depthwise",
    (
        *("height", "width", "out_height", "out_width", "channels", "multiplier"),
        *TAPS,
        *("y_pixel", "y_channel", "input_zero_point", "weight_zero_point"),
        *EPILOGUE,
    ),
)
POOL = Structure(
    "fl_pool",
    (
        *("height", "width", "out_height", "out_width", "channels"),
        *TAPS,
        *("x_pixel", "x_channel", "y_pixel", "y_channel", "low", "high"),
    ),
)
MEAN = Structure(
    "fl_mean", ("x_step", "extent0", "step0", "extent1", "step1", "offset", "multiplier", "shift", *EPILOGUE)
)
ROW_AVERAGES = Structure("fl_row_averages", ("count", "low", "high"))
ROW_MEANS = Structure("fl_row_means", ("offset", "multiplier", "shift", *EPILOGUE))
ADD = Structure(
    "fl_add",
    (
        *("zero_point0", "zero_point1", "left_shift", "multiplier0", "shift0", "multiplier1", "shift1", "sign"),
        *("multiplier", "shift"),
        *EPILOGUE,
    ),
)
CONV16 = Structure(
    "fl_conv16",
    (
        *("height", "width", "channels", "out_height", "out_width", "out_channels", "depth", "units"),
        *TAPS,
        *("low", "high"),
    ),
)
DENSE16 = Structure("fl_dense16", ("units", "depth", "low", "high"))
SVDF = Structure(
    "fl_svdf",
    (
        *("units", "rank", "depth", "memory"),
        *("input_zero_point", "feature_multiplier", "feature_shift", "multiplier", "shift"),
        *EPILOGUE,
    ),
)
LSTM16 = Structure(
    "fl_lstm16",
    (
        *("units", "depth", "entering", "entering_shift", "tanh_multiplier", "tanh_shift", "clip"),
        *("multiplier", "shift"),
    ),
)
FLOAT_LSTM = Structure("fl_float_lstm", ("units", "depth"))
FLOAT_GRU = Structure("fl_float_gru", ("units", "depth", "reset_after"))
FLOAT_RNN = Structure("fl_float_rnn", ("units", "depth", "activation"))
FLOAT_SVDF = Structure("fl_float_svdf", ("units", "rank", "depth", "memory"))
STEPPED = Structure("fl_stepped", ("units", "depth", "weight_zero_point", "zero_point"))
MUL = Structure("fl_mul", ("zero_point0", "zero_point1", "multiplier", "shift", *EPILOGUE))
REQUANTIZE = Structure("fl_requantize", ("input_zero_point", "multiplier", "shift", *EPILOGUE))


def epilogue(op: Any, rounding: str) -> dict[str, int]:
    """Return the final fields of most structures: output zero point and clamp."""
    return {
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
        "single_rounding": int(ROUNDINGS[rounding].is_single),
    }
