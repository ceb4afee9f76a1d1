"""What samples make doubtful is said: labels that are not theirs, numbers on another scale than the network's."""

from pathlib import Path

import numpy as np
import pytest

from stages.ir.samples.files import read_inferences
from stages.ir.samples.sample_warnings import chance_warning, clipping_warning

# Holds -0.64 to 0.635.
PORT = {"name": "x", "dtype": "int8", "shape": [1, 4], "bytes": 4, "scale": 0.005, "zero_point": 0}


@pytest.mark.parametrize(
    ("hits", "samples", "classes", "guessed"),
    [
        (33, 360, 10, True),
        (352, 360, 10, False),
        (47, 360, 10, True),  # 36 and two deviations of 5.7
        (48, 360, 10, False),
        (0, 19, 10, False),  # of so few nothing follows
        (50, 100, 2, True),
        (100, 100, 1, False),  # one class is always right
    ],
)
def test_an_accuracy_that_guessing_has_is_doubted(hits: int, samples: int, classes: int, guessed: bool) -> None:
    told = chance_warning(hits, samples, classes)
    assert bool(told) == guessed
    assert not told or f"{100 * hits / samples:.2f} %" in told


def test_numbers_that_the_input_cannot_hold_are_counted(tmp_path: Path) -> None:
    values = np.array([[0.1, 0.637, -0.642, 0.0], [9.0, -9.0, 0.639, 0.2]], np.float32)
    np.save(tmp_path / "x.npy", values)
    found = read_inferences("x.npy", tmp_path / "x.npy", [PORT])
    # Half a step beyond the ends is rounded to them: 0.637 and -0.642 lose nothing that the others keep.
    assert [(one.reals, one.outside) for one in found] == [(4, 0), (4, 3)]
    assert "37.5 % of the numbers in x.npy" in clipping_warning(found)
    assert clipping_warning(found[:1]) == ""
