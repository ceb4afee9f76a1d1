"""Windows that transfers interleave side by side, against numpy's."""

import itertools

import numpy as np
import pytest

from stages.backends.accelerators.tiles import Span, Tile
from stages.ir.graph import LayerView
from stages.lower.offload.program import Transfer
from stages.lower.offload.windows import gather_variants, padding_block, window_bytes
from tests.conformance.draw import Draw
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.windows import Window
from tests.support.offloading import Memory, apart

ZERO = -7


def convolution(size: tuple[int, int], channels: int, kernel: tuple[int, int], step: int, pad: int) -> LayerView:
    rows, columns = (min(pad, taps - 1) for taps in kernel)
    window = Window(size, kernel, (step, step), (rows, columns, rows, columns))
    return conv2d(Draw(0), window, channels, 4, input_zero_point=ZERO)


SIZES = list(itertools.product(((9, 7), (4, 12)), (1, 3), ((3, 3), (5, 2), (4, 6)), (1, 2), (0, 1, 3)))


@pytest.mark.parametrize(("size", "channels", "kernel", "step", "pad"), SIZES)
def test_all_rows(size: tuple[int, int], channels: int, kernel: tuple[int, int], step: int, pad: int) -> None:
    if size[0] < kernel[0] or size[1] < kernel[1]:
        return
    view = convolution(size, channels, kernel, step, pad)
    op, (_, rows, columns, _) = view.op, view.outputs[0].shape
    image = np.random.default_rng(2).integers(-128, 128, (*size, channels)).astype(np.int8)
    (top, left), around = op.padding[:2], [(n, n + step) for n in op.padding[:2]]
    padded = np.pad(image, [*around, (0, 0)], constant_values=ZERO)
    assert (top, left) == op.padding[2:]
    for first, end in itertools.combinations(range(rows + 1), 2):
        expected = [
            padded[row * step : row * step + kernel[0], column * step : column * step + kernel[1]].reshape(-1)
            for row in range(first, end)
            for column in range(columns)
        ]
        tiling_candidates = gather_variants(view, Tile(Span(first, end), Span(0, 4)), "windows")
        assert (step == 1 and size[1] == columns) <= (len(tiling_candidates) > 1)
        for number, candidate in enumerate(tiling_candidates):
            made, written = gathered(view, image, candidate, (end - first) * columns * window_bytes(view))
            assert np.array_equal(made.view(np.int8), np.concatenate(expected))
            assert (written >= 1).all() and (number > 0 or (written == 1).all())


def gathered(
    view: LayerView, image: np.ndarray, candidate: tuple[Transfer, ...], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """The windows, and how often each of their bytes is written."""
    memory = Memory(
        {
            "input:0": image.view(np.uint8).reshape(-1),
            "constant:padding": np.frombuffer(padding_block(view), np.uint8),
            "windows": np.full(size, 0x5A, np.uint8),
        }
    )
    written = np.zeros(size, int)
    for one in itertools.chain.from_iterable(map(apart, candidate)):
        source = memory.at(one.source, one.runs, one.bytes, one.source_stride)
        to = memory.at(one.to, one.runs, one.bytes, one.to_stride)
        memory.bytes["windows"][to] = memory.bytes[one.source.role][source]
        written[to] += 1
    return memory.bytes["windows"], written
