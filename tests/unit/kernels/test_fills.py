"""What a pad fills: everything around its copy once, or all of the output where that takes less."""

from itertools import product
from math import prod

import numpy as np
import pytest

from stages.backends.kernels.copies import Copy
from stages.backends.kernels.fills import Fill, fills
from stages.backends.kernels.tir.strides import row_major, walk


def pad(shape: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...]) -> tuple[Copy, int]:
    """The copy of a pad between dense tensors, and the elements of its output."""
    out = [n + b + a for n, b, a in zip(shape, before, after, strict=True)]
    into = row_major(out)
    start = sum(n * stride for n, stride in zip(before, into, strict=True))
    return Copy(0, start, 0, tuple(walk(shape, into, row_major(shape)))), prod(out)


def written(filled: list[Fill], elements: int) -> np.ndarray:
    """How often each element is filled."""
    count = np.zeros(elements, int)
    for fill in filled:
        for at in product(*(range(axis.extent) for axis in fill.axes)):
            first = fill.offset + sum(i * axis.strides[0] for i, axis in zip(at, fill.axes, strict=True))
            assert first >= 0 and first + fill.extent <= elements
            count[first : first + fill.extent] += 1
    return count


@pytest.mark.parametrize("shape", [(1, 4, 5, 3), (2, 3, 1, 4), (1, 1, 6, 1), (2, 2, 2, 2)])
@pytest.mark.parametrize("before", list(product((0, 1), (0, 2), (0, 1), (0, 3))))
@pytest.mark.parametrize("after", [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 2, 0), (0, 0, 1, 1), (1, 2, 3, 4)])
def test_what_lies_around_the_copy_is_filled_once(
    shape: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    copy, elements = pad(shape, before, after)
    out = tuple(n + b + a for n, b, a in zip(shape, before, after, strict=True))
    wanted = np.ones(out, int)
    wanted[tuple(slice(b, b + n) for b, n in zip(before, shape, strict=True))] = 0
    assert np.array_equal(written(fills(copy, elements, 0.0, 1.0), elements), wanted.reshape(-1))
