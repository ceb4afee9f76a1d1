"""TRANSPOSE_CONV of float32 as a convolution in Relax, of which each phase of the output is some channels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from tvm import relax

from stages.ir.arithmetic.transposed import PhaseAxis, phase_weights


def transposed_convolution(data: relax.Expr, weights: Any, axes: Sequence[PhaseAxis], out: Sequence[int]) -> relax.Expr:
    """`data` NHWC and `weights` OHWI, float32; the result of shape `out`. The phases are interleaved by a transpose."""
    rows, columns = axes
    phases = product(range(rows.stride), range(columns.stride))
    parts = [
        phase_weights(weights, rows.taps_of(row, rows.most_taps), columns.taps_of(column, columns.most_taps), 0.0)
        for row, column in phases
    ]
    kernel = relax.const(np.ascontiguousarray(np.concatenate(parts).transpose(1, 2, 3, 0)))  # HWIO
    (top, bottom), (left, right) = (axis.padding(axis.most_taps) for axis in axes)
    made = relax.op.nn.conv2d(
        data, kernel, padding=(top, left, bottom, right), data_layout="NHWC", kernel_layout="HWIO"
    )
    batch, _, _, channels = out
    split = (batch, rows.count, columns.count, rows.stride, columns.stride, channels)
    made = relax.op.permute_dims(relax.op.reshape(made, split), (0, 1, 3, 2, 4, 5))
    made = relax.op.reshape(made, (batch, rows.count * rows.stride, columns.count * columns.stride, channels))
    begin = (rows.begin, columns.begin)
    end = (rows.begin + out[1], columns.begin + out[2])
    return relax.op.strided_slice(made, (1, 2), begin, end)
