"""Which input rows and channels a tile of a layer's output reads."""

import itertools

import pytest

from stages.backends.accelerators.tiles import InputRegion, Span, Tile, reads, why_not_tiled
from stages.ir.arithmetic.sliding import extent
from stages.ir.graph import Add, DepthwiseConv2D, Graph, Layer, LayerView, Pool2D, Tensor

ACT = {"output_zero_point": 0, "act_min": -128, "act_max": 127}


def view(op: object, x: tuple[int, ...], y: tuple[int, ...], inputs: int = 1) -> LayerView:
    names = [f"x{number}" for number in range(inputs)]
    tensors = {name: Tensor(name=name, shape=x, dtype="int8") for name in names}
    layer = Layer.model_validate({"index": 0, "name": "y", "op": op, "inputs": names, "outputs": ["y"]})
    return Graph(tensors | {"y": Tensor(name="y", shape=y, dtype="int8")}, [layer]).view(layer)


CASES = list(itertools.product((3, 4, 9), (1, 3, 5), (1, 2, 3), (0, 2), (0, 1)))


@pytest.mark.parametrize(("size", "taps", "step", "above", "below"), CASES)
def test_rows_of_windows(size: int, taps: int, step: int, above: int, below: int) -> None:
    rows = (size + above + below - extent(taps, 1)) // step + 1
    if rows < 1 or above >= taps or below >= taps:
        return
    op = Pool2D(op="max_pool2d", kernel=(taps, 1), stride=(step, 1), padding=(above, 0, below, 0), **ACT)
    pooled = view(op, (1, size, 2, 8), (1, rows, 2, 8))
    for first, end in itertools.combinations(range(rows + 1), 2):
        touched = [row * step - above + tap for row in range(first, end) for tap in range(taps)]
        inside = [row for row in touched if 0 <= row < size]
        (part,) = reads(pooled, Tile(Span(first, end), Span(3, 5)))
        assert list(range(part.rows.first, part.rows.end)) == sorted(set(range(min(inside), max(inside) + 1)))
        assert (part.above, part.below) == (max(-min(touched), 0), max(max(touched) + 1 - size, 0))
        assert part.channels == Span(3, 5)


def test_a_depthwise_tile_reads_its_channels_and_a_sum_of_two_both() -> None:
    fields = {"kernel": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "input_zero_point": 0}
    op = DepthwiseConv2D(depth_multiplier=2, in_channels=8, out_channels=16, **fields, **ACT)
    (part,) = reads(view(op, (1, 4, 2, 8), (1, 4, 2, 16)), Tile(Span(1, 2), Span(3, 8)))
    assert part == InputRegion(Span(1, 2), Span(1, 4))
    scales = {"left_shift": 20, "multipliers": (1, 1), "shifts": (0, 0), "output_multiplier": 1, "output_shift": 0}
    add = Add(op="add", zero_points=(0, 0), **scales, **ACT)
    both = reads(view(add, (1, 4, 2, 8), (1, 4, 2, 8), inputs=2), Tile(Span(1, 2), Span(3, 8)))
    assert both == (InputRegion(Span(1, 2), Span(3, 8)),) * 2
    wider = view(add, (1, 1, 2, 8), (1, 4, 2, 8), inputs=2)
    assert why_not_tiled(wider) == "tensor x0 differs in shape from the output"


def test_images_with_windows_are_not_taken_apart() -> None:
    op = Pool2D(op="max_pool2d", kernel=(1, 1), stride=(1, 1), padding=(0, 0, 0, 0), **ACT)
    assert why_not_tiled(view(op, (2, 4, 2, 8), (2, 4, 2, 8))) == "a batch of 2 images with windows"
    assert why_not_tiled(view(op, (1, 4, 2, 8), (1, 4, 2, 8))) == ""
