"""RESIZE_BILINEAR of 8 bits and RESIZE_NEAREST_NEIGHBOR of other types against LiteRT, bit for bit."""

from pathlib import Path

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from tests.support.integer import compare, integer_graph
from tests.support.stages_run import check_firmware

MODES = {"plain": {}, "corners": {"alignCorners": True}, "centers": {"halfPixelCenters": True}}


def model(dtype: str, image: tuple[int, ...], size: tuple[int, int], mode: str) -> bytes:
    """The scales differ: LiteRT uses the raw integers."""
    b = ModelBuilder()
    inputs = b.input("x", image, dtype, 0.1, 3), b.constant("size", np.array(size, np.int32))
    b.output(b.emit("RESIZE_BILINEAR", inputs, None, (0.2, 5), "y", "ResizeBilinearOptions", MODES[mode]))
    return b.build()


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_sizes(dtype: str, mode: str, layout: str) -> None:
    """Up, down, to and from one row, and to sizes whose steps are not multiples of 1/1024."""
    rng, limits = np.random.default_rng(5), np.iinfo(dtype)
    sizes = [tuple(int(n) for n in rng.integers(1, most, 2)) for most in (12, 24) * 4]
    for size, out in [*zip(sizes[::2], sizes[1::2], strict=True), ((1, 5), (7, 1)), ((6, 6), (96, 97))]:
        data = model(dtype, (2, *size, 3), out, mode)
        image = rng.integers(limits.min, limits.max + 1, (2, *size, 3)).astype(dtype)
        assert compare(data, [image], layout).wrong == {}, (size, out)


def test_where_litert_reads_behind_the_image() -> None:
    with pytest.raises(StageError, match="go beyond the last"):
        integer_graph(model("int8", (1, 1800, 1, 1), (60000, 1), "plain"))


ALL_TYPES = {"int16": {}, "int32": {"alignCorners": True}, "bool": {"halfPixelCenters": True}}


@pytest.mark.parametrize("dtype", ALL_TYPES)
def test_it_moves(dtype: str, tmp_path: Path) -> None:
    b, quant = ModelBuilder(), (0.01, 0) if dtype == "int16" else None
    x = b.input("x", (2, 5, 3, 4), dtype, *(quant or ()))
    size = b.constant("size", np.array([7, 2], np.int32))
    fields = {"alignCorners": False, "halfPixelCenters": False, **ALL_TYPES[dtype]}
    out = b.emit("RESIZE_NEAREST_NEIGHBOR", [x, size], (2, 7, 2, 4), quant, "y", "ResizeNearestNeighborOptions", fields)
    b.output(out)
    check_firmware(b.build(), tmp_path)
