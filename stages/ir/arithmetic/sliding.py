"""Sliding windows: how often one fits along an axis, what SAME pads, and the elements that its taps meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

Pair = tuple[int, int]


def extent(taps: int, dilation: int) -> int:
    """Elements from the first tap to the last."""
    return (taps - 1) * dilation + 1


def places(size: int, taps: int, stride: int, dilation: int, *, same: bool) -> int:
    """The size of the output along one axis; TensorFlow's SAME and VALID. Not above 0 where the window does not fit."""
    return -(-size // stride) if same else -((extent(taps, dilation) - 1 - size) // stride)


def same_padding(size: int, taps: int, stride: int, dilation: int) -> Pair:
    """Elements before and after one axis under SAME; the odd one goes after."""
    total = (places(size, taps, stride, dilation, same=True) - 1) * stride + extent(taps, dilation) - size
    return max(0, total) // 2, max(0, total) - max(0, total) // 2


def tapped(image: Array, kernel: Pair, stride: Pair, dilation: Pair, out: Pair) -> list[Array]:
    """For each tap of a window, row by row, the view [N, *out, C] of a padded image [N, H, W, C] that it meets."""
    return [
        image[
            :,
            row * dilation[0] : row * dilation[0] + (out[0] - 1) * stride[0] + 1 : stride[0],
            column * dilation[1] : column * dilation[1] + (out[1] - 1) * stride[1] + 1 : stride[1],
        ]
        for row in range(kernel[0])
        for column in range(kernel[1])
    ]
