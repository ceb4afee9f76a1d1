"""RESIZE_NEAREST_NEIGHBOR of every type: firmware on the host equals LiteRT."""

from pathlib import Path

import numpy as np
import pytest

from stages.ir.models.builder import ModelBuilder
from tests.support.stages_run import check_firmware

MODES = {"int16": {}, "int32": {"alignCorners": True}, "bool": {"halfPixelCenters": True}}


@pytest.mark.parametrize("dtype", MODES)
def test_it_moves(dtype: str, tmp_path: Path) -> None:
    b, quant = ModelBuilder(), (0.01, 0) if dtype == "int16" else None
    x = b.input("x", (2, 5, 3, 4), dtype, *(quant or ()))
    size = b.constant("size", np.array([7, 2], np.int32))
    fields = {"alignCorners": False, "halfPixelCenters": False, **MODES[dtype]}
    out = b.emit("RESIZE_NEAREST_NEIGHBOR", [x, size], (2, 7, 2, 4), quant, "y", "ResizeNearestNeighborOptions", fields)
    b.output(out)
    check_firmware(b.build(), tmp_path)
