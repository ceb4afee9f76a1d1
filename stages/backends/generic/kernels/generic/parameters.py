"""Constant structures of the generic kernels' headers."""

from typing import Any

from stages.backends.kernels.structure import Structure
from stages.ir.layers import ROUNDINGS

GEMM = Structure.of_header("fl_gemm", __file__, "gemm.h")
IM2COL = Structure.of_header("fl_im2col", __file__, "im2col.h")
DEPTHWISE = Structure.of_header("fl_depthwise", __file__, "depthwise.h")
POOL = Structure.of_header("fl_pool", __file__, "pool.h")
MEAN = Structure.of_header("fl_mean", __file__, "mean.h")
ROW_AVERAGES = Structure.of_header("fl_row_averages", __file__, "row_sums.h")
ROW_MEANS = Structure.of_header("fl_row_means", __file__, "row_sums.h")
ADD = Structure.of_header("fl_add", __file__, "add.h")
CONV16 = Structure.of_header("fl_conv16", __file__, "conv16.h")
DENSE16 = Structure.of_header("fl_dense16", __file__, "conv16.h")
SVDF = Structure.of_header("fl_svdf", __file__, "svdf.h")
LSTM16 = Structure.of_header("fl_lstm16", __file__, "lstm16.h")
FLOAT_LSTM = Structure.of_header("fl_float_lstm", __file__, "float_lstm.h")
FLOAT_GRU = Structure.of_header("fl_float_gru", __file__, "float_recurrent.h")
FLOAT_RNN = Structure.of_header("fl_float_rnn", __file__, "float_recurrent.h")
FLOAT_SVDF = Structure.of_header("fl_float_svdf", __file__, "float_svdf.h")
STEPPED = Structure.of_header("fl_stepped", __file__, "stepped.h")
MUL = Structure.of_header("fl_mul", __file__, "mul.h")
REQUANTIZE = Structure.of_header("fl_requantize", __file__, "requantize_elements.h")


def epilogue(op: Any, rounding: str) -> dict[str, int]:
    """Return the final fields of most structures: output zero point and clamp."""
    return {
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
        "single_rounding": int(ROUNDINGS[rounding].is_single),
    }
