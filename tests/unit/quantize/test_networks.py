"""Whole real networks: every tensor of the integer graph equals LiteRT's, in every layout."""

from pathlib import Path

import pytest

from stages.quantize.checks import widened
from stages.reference.interpreter import Reference
from tests.support.integer import LAYOUTS, compare
from tests.support.shared_models import FOLDER

NETWORKS = [path for name in ("mlperf_tiny", "hosted", "small") for path in sorted((FOLDER / name).glob("*.tflite"))]
OPERATORS = sorted((FOLDER / "ops").rglob("*.tflite"))
WHY = f"no real models at {FOLDER}; set FIRMLINE_MODELS to their folder"


@pytest.mark.skipif(not NETWORKS, reason=WHY)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.stem)
def test_every_tensor_of_a_real_network_equals_litert(path: Path, layout: str) -> None:
    found = compare(path.read_bytes(), layout=layout, seed=3)
    assert found.wrong == {}
    assert found.checked > len(found.graph.layers)
    assert widened(found.graph) == []


@pytest.mark.skipif(not OPERATORS, reason=WHY)
def test_operators_cut_from_real_networks_equal_litert() -> None:
    checked = 0
    for path in OPERATORS:
        if path.name.startswith("bad_"):
            continue
        found = compare(path.read_bytes(), seed=1)
        assert found.wrong == {}, path
        checked += 1
    assert checked > 40


@pytest.mark.skipif(not OPERATORS, reason=WHY)
def test_real_operators_are_not_all_constant() -> None:
    """Guards the test above: LiteRT's outputs on these inputs are not saturated to one value."""
    path = next(path for path in OPERATORS if path.name.startswith("004.CONV_2D"))
    reference = Reference(path.read_bytes())
    from stages.reference.interpreter import random_inputs

    assert len(set(reference.run(random_inputs(reference.info, 1))[0].flat)) > 20
