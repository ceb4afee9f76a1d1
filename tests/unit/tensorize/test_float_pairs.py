"""ADD_N, FLOOR_DIV, FLOOR_MOD and POW as firmware on the machine that builds, against LiteRT."""

from pathlib import Path

import numpy as np
import pytest

from stages.ir.models.builder import BuildError, ModelBuilder
from stages.ir.reference.interpreter import Reference
from tests.support.stages_run import run_tflite

CASES = [(op, dtype) for op in ("ADD_N", "FLOOR_DIV", "FLOOR_MOD", "POW") for dtype in ("float32", "int32")]
CASES[CASES.index(("POW", "int32"))] = ("FLOOR_MOD", "int64")


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_pairs(op: str, dtype: str, tmp_path: Path) -> None:
    """Of both signs, with broadcasting where the operator has it; ADD_N of three."""
    rng = np.random.default_rng(len(op))
    shapes = [(2, 3, 4)] * 3 if op == "ADD_N" else [(2, 3, 4), (3, 1)]
    given = [rng.uniform(0.5, 6, shape).astype(dtype) for shape in shapes]
    if op != "POW":
        given = [
            np.where(rng.integers(0, 2, x.shape), np.maximum(x, 1), -np.maximum(x, 1)).astype(dtype) for x in given
        ]
    b = ModelBuilder()
    inputs = [b.input(f"x{number}", shape, dtype) for number, shape in enumerate(shapes)]
    b.output(b.emit(op, inputs, None, None, "y"))
    (expected,) = Reference(b.build()).run(given)
    (found,) = run_tflite(b.build(), [given], tmp_path)[0].outputs
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_add_n_takes_one_shape() -> None:
    b = ModelBuilder()
    inputs = [b.input("a", (2, 3), "float32"), b.input("b", (3,), "float32")]
    with pytest.raises(BuildError, match="all must have one shape"):
        b.emit("ADD_N", inputs, None, None, "y")
