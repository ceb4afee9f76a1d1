"""Float32 TRANSPOSE_CONV as one Relax convolution whose channels hold the output phases."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from tvm import relax

from stages.ir.arithmetic.transposed import PhaseAxis, phase_weights


def transposed_convolution(data: relax.Expr, weights: Any, axes: Sequence[PhaseAxis], out: Sequence[int]) -> relax.Expr:
    """Return the transposed convolution of `data` (NHWC) and `weights` (OHWI), both float32.

    One convolution computes all phases as channels; a transpose interleaves them. The result has the shape `out`.
    """
    rows, columns = axes
    phases = product(range(rows.stride), range(columns.stride))
    parts = [
        phase_weights(weights, rows.taps_of(row, rows.most_taps), columns.taps_of(column, columns.most_taps), 0.0)
        for row, column in phases
    ]
    kernel = relax.const(np.ascontiguousarray(np.concatenate(parts).transpose(1, 2, 3, 0)))  # HWIO
    (top_pad, bottom_pad), (left_pad, right_pad) = (axis.padding(axis.most_taps) for axis in axes)
    result = relax.op.nn.conv2d(
        data, kernel, padding=(top_pad, left_pad, bottom_pad, right_pad), data_layout="NHWC", kernel_layout="HWIO"
    )
    batch, _, _, channels = out
    split = (batch, rows.count, columns.count, rows.stride, columns.stride, channels)
    result = relax.op.permute_dims(relax.op.reshape(result, split), (0, 1, 3, 2, 4, 5))
    result = relax.op.reshape(result, (batch, rows.count * rows.stride, columns.count * columns.stride, channels))
    begin = (rows.begin, columns.begin)
    end = (rows.begin + out[1], columns.begin + out[2])
    return relax.op.strided_slice(result, (1, 2), begin, end)
