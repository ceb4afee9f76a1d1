"""Weights in the layout that quads.c reads."""

import numpy as np
from numpy.typing import NDArray

from stages.backends.riscv.kernels.rvp.quad_lines import QuadLines


def quad_weights(rows: NDArray[np.int8], lines: QuadLines, quads: list[list[list[int]]]) -> NDArray[np.int8]:
    """Return weights of quads.c: int8 [quads, window rows, words, 4, lanes, 4].

    The input is [channels, rows, columns, depth]. Bytes outside the window of an output byte are 0.
    """
    _, kernel_rows, columns, depth = rows.shape
    packed = np.zeros((len(quads), kernel_rows, 4, lines.lanes, lines.weight_words * 4), np.int8)
    for index, quad in enumerate(quads):
        number = index % len(lines.quads)
        for lane, channels in enumerate(quad):
            for byte, channel in enumerate(channels):
                first = (4 * number + byte) // lines.units * lines.step - lines.quads[number].start * 4
                for column in range(columns):
                    at = first + column * lines.dilation[1] * depth
                    packed[index, :, byte, lane, at : at + depth] = rows[channel, :, column]
    split = packed.reshape(len(quads), kernel_rows, 4, lines.lanes, lines.weight_words, 4)
    return np.ascontiguousarray(split.transpose(0, 1, 4, 2, 3, 5))
