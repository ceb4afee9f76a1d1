"""Sliding windows: number of positions along an axis, SAME padding, views per tap."""

from stages.ir.arrays import Array

Pair = tuple[int, int]


def extent(taps: int, dilation: int) -> int:
    """Return the elements from the first tap to the last."""
    return (taps - 1) * dilation + 1


def places(size: int, taps: int, stride: int, dilation: int, *, same: bool) -> int:
    """Return the output size along one axis for TensorFlow's SAME or VALID.

    It is not above 0 if the window does not fit.
    """
    return -(-size // stride) if same else -((extent(taps, dilation) - 1 - size) // stride)


def same_padding(size: int, taps: int, stride: int, dilation: int) -> Pair:
    """Return the padding before and after one axis under SAME; the odd element goes after."""
    total = (places(size, taps, stride, dilation, same=True) - 1) * stride + extent(taps, dilation) - size
    return max(0, total) // 2, max(0, total) - max(0, total) // 2


def tapped(image: Array, kernel: Pair, stride: Pair, dilation: Pair, out: Pair) -> list[Array]:
    """Return for each tap, row by row, the view [N, *out, C] of a padded image [N, H, W, C]."""
    return [
        image[
            :,
            row * dilation[0] : row * dilation[0] + (out[0] - 1) * stride[0] + 1 : stride[0],
            column * dilation[1] : column * dilation[1] + (out[1] - 1) * stride[1] + 1 : stride[1],
        ]
        for row in range(kernel[0])
        for column in range(kernel[1])
    ]
