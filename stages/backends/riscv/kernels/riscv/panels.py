"""Weights and channel constants in the layout that `panels32.h` and `panels64.h` read."""

import numpy as np

from stages.backends.riscv.kernels.riscv.rows import GROUP, Rows

_MOST = 32767  # what is added to halves of words before they are counted


def panels(weights: np.ndarray, words: Rows) -> np.ndarray:
    """Pack int8 [columns, row] into consecutive panels, int8 [bytes]; the filling is 0."""
    columns, row = weights.shape
    whole = np.zeros((words.whole_columns(columns), words.depth), np.int8)
    whole[:columns, :row] = weights
    by_panel = whole.reshape(-1, words.panel, words.depth).transpose(0, 2, 1)
    interleaved = np.ascontiguousarray(by_panel).reshape(len(by_panel), -1)
    if not words.header:
        return interleaved.reshape(-1)
    return np.concatenate([_headers(by_panel, words), interleaved], axis=1).reshape(-1)


def channels(constants: np.ndarray, words: Rows) -> np.ndarray:
    """Return int32 [columns, 3] constants, padded with rows of 0 to whole panels."""
    columns = len(constants)
    return np.pad(constants, ((0, words.whole_columns(columns) - columns), (0, 0)))


def _headers(weights: np.ndarray, words: Rows) -> np.ndarray:
    """Return int8 [panels, bytes] headers for weights [panels, depth, columns].

    A header is a halfword with the number of counts, then one bit per group of elements (the first group in the top bit
    of a halfword). A set bit means that the products of the group may be counted once: the sums of four of them, plus
    _MOST, stay in [0, 2^16) for all int8 activations and both columns.
    """
    groups = weights.astype(np.int64).reshape(len(weights), -1, GROUP, words.panel)
    up, down = np.maximum(groups, 0).sum(2), -np.minimum(groups, 0).sum(2)
    most, least = 127 * up + 128 * down, -128 * up - 127 * down
    once = ((most + _MOST < 1 << 16) & (least + _MOST >= 0)).all(2)
    bits = np.zeros((len(weights), 8 * (words.header - 2)), np.uint8)
    bits[:, : once.shape[1]] = once
    masks = np.packbits(bits, axis=1).reshape(len(weights), -1, 2)[:, :, ::-1]
    counted = (2 * once.shape[1] - once.sum(1)).astype("<u2")[:, None].view(np.uint8)
    header = np.concatenate([counted, masks.reshape(len(weights), -1)], axis=1)
    return np.ascontiguousarray(header).view(np.int8)
