"""Which input rows and channels a tile of a layer's output reads."""

import itertools

import pytest

from stages.backends.accelerators.tiles import InputRegion, Span, Tile, reads, why_not_tiled
from stages.ir.arithmetic.sliding import extent
from tests.conformance.draw import Draw
from tests.conformance.operators.add import add
from tests.conformance.operators.depthwise_conv2d import depthwise
from tests.conformance.operators.pool2d import pool2d
from tests.conformance.operators.windows import Window

CASES = list(itertools.product((3, 4, 9), (1, 3, 5), (1, 2, 3), (0, 2), (0, 1)))


@pytest.mark.parametrize(("size", "taps", "step", "above", "below"), CASES)
def test_rows_of_windows(size: int, taps: int, step: int, above: int, below: int) -> None:
    rows = (size + above + below - extent(taps, 1)) // step + 1
    if rows < 1 or above >= taps or below >= taps:
        return
    window = Window((size, 2), (taps, 1), (step, 1), (above, 0, below, 0))
    pooled = pool2d(Draw(0), window, 8)
    for first, end in itertools.combinations(range(rows + 1), 2):
        touched = [row * step - above + tap for row in range(first, end) for tap in range(taps)]
        inside = [row for row in touched if 0 <= row < size]
        (part,) = reads(pooled, Tile(Span(first, end), Span(3, 5)))
        assert list(range(part.rows.first, part.rows.end)) == sorted(set(range(min(inside), max(inside) + 1)))
        assert (part.above, part.below) == (max(-min(touched), 0), max(max(touched) + 1 - size, 0))
        assert part.channels == Span(3, 5)


def test_a_depthwise_tile_reads_its_channels_and_a_sum_of_two_both() -> None:
    (part,) = reads(depthwise(Draw(0), Window((4, 2)), 8, multiplier=2), Tile(Span(1, 2), Span(3, 8)))
    assert part == InputRegion(Span(1, 2), Span(1, 4))
    both = reads(add(Draw(0), [(1, 4, 2, 8)] * 2), Tile(Span(1, 2), Span(3, 8)))
    assert both == (InputRegion(Span(1, 2), Span(3, 8)),) * 2
    wider = add(Draw(0), [(1, 1, 2, 8), (1, 4, 2, 8)])
    assert why_not_tiled(wider) == "tensor x0 differs in shape from the output"


def test_images_with_windows_are_not_taken_apart() -> None:
    assert why_not_tiled(pool2d(Draw(0), Window((4, 2)), 8, batch=2)) == "a batch of 2 images with windows"
    assert why_not_tiled(pool2d(Draw(0), Window((4, 2)), 8)) == ""
