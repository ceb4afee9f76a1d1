"""Where RESIZE_NEAREST_NEIGHBOR reads, in the float32 arithmetic of the reference (GetNearestNeighbor)."""

from __future__ import annotations

from math import floor

import numpy as np


def source_indices(source: int, size: int, align_corners: bool, half_pixel_centers: bool) -> list[int]:
    """For each of `size` output positions the position in an axis of `source` elements."""
    if align_corners and size > 1:
        scale = np.float32(source - 1) / np.float32(size - 1)
    else:
        scale = np.float32(source) / np.float32(size)
    offset = np.float32(0.5 if half_pixel_centers else 0.0)
    found = []
    for position in range(size):
        real = float((np.float32(position) + offset) * scale)
        # Not negative: halves away from zero is halves up.
        index = floor(real + 0.5) if align_corners else floor(real)
        found.append(max(0, min(index, source - 1)))
    return found
