"""Real networks: every tensor of the integer graph equals LiteRT's, in every layout."""

from pathlib import Path

import pytest

from stages.quantize.checks import widened
from tests.support.integer import LAYOUTS, compare
from tests.support.shared_models import FOLDER

NETWORKS = [path for name in ("mlperf_tiny", "hosted", "small") for path in sorted((FOLDER / name).glob("*.tflite"))]
OPERATORS = sorted((FOLDER / "ops").rglob("*.tflite"))
WHY = f"no real models at {FOLDER}; set FIRMLINE_MODELS to their folder"


@pytest.mark.skipif(not NETWORKS, reason=WHY)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.stem)
def test_every_tensor_of_a_real_network_equals_litert(path: Path, layout: str) -> None:
    comparison = compare(path.read_bytes(), layout=layout, seed=3)
    assert comparison.wrong == {}
    assert comparison.checked > len(comparison.graph.layers)
    assert widened(comparison.graph) == []


@pytest.mark.skipif(not OPERATORS, reason=WHY)
def test_operators_cut_from_real_networks_equal_litert() -> None:
    checked = 0
    for path in OPERATORS:
        if path.name.startswith("bad_"):
            continue
        comparison = compare(path.read_bytes(), seed=1)
        assert comparison.wrong == {}, path
        checked += 1
    assert checked > 40
