"""Source positions of RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR, as in the reference."""

from collections.abc import Sequence
from math import ceil, floor

import numpy as np


def source_indices(source: int, size: int, align_corners: bool, half_pixel_centers: bool) -> list[int]:
    """Source position of each of `size` outputs along an axis of `source` (GetNearestNeighbor)."""
    if align_corners and size > 1:
        scale = np.float32(source - 1) / np.float32(size - 1)
    else:
        scale = np.float32(source) / np.float32(size)
    offset = np.float32(0.5 if half_pixel_centers else 0.0)
    indices = []
    for position in range(size):
        real = float((np.float32(position) + offset) * scale)
        # Not negative: halves away from zero is halves up.
        index = floor(real + 0.5) if align_corners else floor(real)
        indices.append(max(0, min(index, source - 1)))
    return indices


def bilinear(
    source: int, size: int, align_corners: bool, half_pixel_centers: bool, *, integer: bool
) -> tuple[list[tuple[int, int]], Sequence[float]]:
    """The two source positions of each of `size` outputs along an axis, and the second's share.

    With `integer` the share is in 1024ths (ComputeInterpolationValuesInteger), else a float32
    (ComputeInterpolationValues). Raises ValueError if the reference would read beyond the axis of `source` elements:
    rounded steps cause this on long ones.
    """
    options = align_corners and size > 1, half_pixel_centers
    positions: list[tuple[int, int]]
    shares: Sequence[float]
    positions, shares = (_integer_positions if integer else _real_positions)(source, size, *options)
    if max(low for low, _ in positions) >= source:
        raise ValueError(f"{size} positions with steps in 1024ths go beyond the last of {source} elements")
    return positions, shares


def _integer_positions(
    source: int, size: int, align_corners: bool, half_pixel_centers: bool
) -> tuple[list[tuple[int, int]], list[int]]:
    span, steps = (source - 1, size - 1) if align_corners else (source, size)
    step = (1024 * span + steps // 2) // steps
    positions, shares = [], []
    for position in range(size):
        scaled = position * step + (step // 2 - 512 if half_pixel_centers else 0)
        low, high = (int(part / 1024) for part in (scaled, scaled + 1023))  # towards zero, as C divides
        positions.append((max(low, 0), min(high, source - 1)))
        shares.append(scaled - 1024 * positions[-1][0])
    return positions, shares


def _real_positions(
    source: int, size: int, align_corners: bool, half_pixel_centers: bool
) -> tuple[list[tuple[int, int]], list[float]]:
    f32 = np.float32
    step = f32(source - 1) / f32(size - 1) if align_corners else f32(source) / f32(size)
    positions, shares = [], []
    for position in range(size):
        scaled = (f32(position) + f32(0.5)) * step - f32(0.5) if half_pixel_centers else f32(position) * step
        positions.append((max(floor(scaled), 0), min(ceil(scaled), source - 1)))
        shares.append(float(scaled - f32(positions[-1][0])))
    return positions, shares
