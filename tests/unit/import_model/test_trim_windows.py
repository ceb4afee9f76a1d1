"""Windows, strides and dilations that TVM is given see the same elements as those of the file."""

import numpy as np
import pytest

from stages.import_model.build import build_module
from stages.import_model.trim_windows import sliding_taps, sliding_window
from stages.ir.models.tflite_reader import read
from stages.ir.reference.interpreter import random_inputs, run
from tests.support.malformed import altered, option, pool
from tests.support.relax_run import run_relax

SAME, VALID = 0, 1


def seen(size: int, taps: int, stride: int, dilation: int, padding: int) -> list[list[tuple[int, int]]]:
    """For each output the taps inside of the image, with where they are; padding as TFLite has it."""
    extent = (taps - 1) * dilation + 1
    count = -(-size // stride) if padding == SAME else (size - extent) // stride + 1
    before = max((count - 1) * stride + extent - size, 0) // 2 if padding == SAME else 0
    starts = [output * stride - before for output in range(count)]
    places = [[(tap, start + tap * dilation) for tap in range(taps)] for start in starts]
    return [[(tap, at) for tap, at in row if 0 <= at < size] for row in places]


def elements(rows: list[list[tuple[int, int]]]) -> list[list[int]]:
    return [[at for _, at in row] for row in rows]


@pytest.mark.parametrize("size", range(1, 8))
def test_a_pool_sees_the_same_elements(size: int) -> None:
    for stride in range(1, 11):
        for window in range(1, 30):
            paddings = (SAME, VALID) if window <= size else (SAME,)
            for padding in paddings:
                less, step = sliding_window(size, window, stride, padding)
                assert less <= 2 * size and step <= size
                had, has = (seen(size, *pair, 1, padding) for pair in ((window, stride), (less, step)))
                assert elements(had) == elements(has), (window, stride, padding)


@pytest.mark.parametrize("size", range(1, 8))
def test_a_convolution_sees_the_same_elements_with_the_same_taps(size: int) -> None:
    for stride in range(1, 11):
        for taps in range(1, 6):
            for dilation in range(1, 70):
                paddings = (SAME, VALID) if (taps - 1) * dilation < size else (SAME,)
                for padding in paddings:
                    step, spread = sliding_taps(size, taps, stride, dilation, padding)
                    assert step <= size and spread <= 4 * size + 3
                    had = seen(size, taps, stride, dilation, padding)
                    assert had == seen(size, taps, step, spread, padding), (taps, stride, dilation, padding)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_a_window_much_larger_than_the_image_is_computed(op: str, dtype: str) -> None:
    large = altered(pool(op, dtype), option("filterHeight", 65536), option("filterWidth", 65535))
    info = read(large)
    inputs = random_inputs(info)
    (got,), (wanted,) = run_relax(build_module(large, info), inputs), run(large, inputs)
    np.testing.assert_allclose(
        got.astype(float), wanted.astype(float), rtol=1e-6, atol=1.0 if dtype == "int8" else 1e-6
    )
