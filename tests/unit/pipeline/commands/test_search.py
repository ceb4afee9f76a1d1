"""`doit search`: what is tried, what is ahead of all others, what is within a budget, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.api import run_recipe
from pipeline.commands.search import Budget, Candidate, Measurement, best, candidates, pareto_front, search, table
from pipeline.errors import PipelineError
from tests.support.optional import needs

OPTIONS: dict[str, Any] = {"weights": "int8", "keep_int16": [{"op": "add"}], "keep_float": []}


def measured(name: str, *figures: float, error: str = "") -> Measurement:
    loss, snr, instructions, ram, rom = figures or (0.0, 0.0, 0, 0, 0)
    return Measurement(Candidate(name, {}), loss, snr, int(instructions), int(ram), int(rom), error)


def layer(name: str, drop: float, dtype: str = "int8") -> dict[str, Any]:
    return {"name": name, "drop": drop, "dtype": dtype}


def test_layers_that_lose_most_are_tried_first_and_rules_of_the_recipe_stay() -> None:
    layers = [layer("a", 1), layer("b[0]", 3), layer("c", 2), layer("d", 0.05), layer("e", 9, "float32")]
    tried = candidates(layers, OPTIONS, 100)
    assert [candidate.name for candidate in tried[:5]] == [
        *("unchanged recipe", "int4 weights", "1 layer with int16", "1 layer with int16, int4 weights"),
        "1 layer in float",
    ]
    assert tried[2].options == {"keep_int16": [{"op": "add"}, {"name": "b[[]0]"}]}
    assert tried[3].options == {"keep_int16": [{"op": "add"}, {"name": "b[[]0]"}], "weights": "int4"}
    sizes = [len(candidate.options["keep_float"]) for candidate in tried if "keep_float" in candidate.options]
    assert sizes == [1, 2, 3]
    assert [candidate["name"] for candidate in tried[-1].options["keep_float"]] == ["b[[]0]", "c", "a"]
    assert len(candidates(layers, OPTIONS, 4)) == 4
    assert [candidate.name for candidate in candidates([layer("a", 1)], {**OPTIONS, "weights": "int4"}, 9)] == [
        *("unchanged recipe", "1 layer with int16", "1 layer in float")
    ]


def test_best_is_within_the_budget_with_least_loss_then_fewest_instructions() -> None:
    measurements = [
        measured("a", 0, 40, 900, 60, 10),
        measured("b", 0, 45, 800, 60, 10),
        measured("c", 2, 50, 100, 10, 10),
        measured("d", error="does not fit"),
    ]
    assert best(measurements, Budget()) is measurements[1]
    assert best(measurements, Budget(ram=50)) is measurements[2]
    assert best(measurements, Budget(instructions=850)) is measurements[1]
    assert best(measurements, Budget(loss=1, ram=50)) is None
    verdicts = [row[-1] for row in table(measurements, Budget(loss=1, ram=60)).rows]
    assert verdicts == ["", "best", "on the front; beyond the budget: loss", "does not fit"]
    assert table(measurements, Budget(loss=1)).good == (True, True, False, False)


def test_a_recipe_that_quantizes_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="recipe 'digits_rvp' does not quantize: nothing to search"):
        search("digits_rvp", store=tmp_path / "store", build=tmp_path / "build")
    with pytest.raises(PipelineError, match="target host does not count instructions"):
        search("digits_ptq", {"target": "host"}, store=tmp_path / "store", build=tmp_path / "build")


@needs("ai_edge_quantizer", "ptq")
def test_candidates_are_measured_and_verified_as_firmware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verified = []

    def watched(*arguments: Any, **places: Any) -> Any:
        result = run_recipe(*arguments, **places)
        verified.append(json.loads((result.artifacts["verify"] / "verify.json").read_text()))
        return result

    monkeypatch.setattr("pipeline.commands.search.run_recipe", watched)
    budget = {"set": "stages.quantize.search={most: 3, max_loss: 5.0, ram: 64K, instructions: 100000}"}
    measurements, bounds = search("digits_ptq", budget, store=tmp_path / "store", build=tmp_path / "build")
    assert bounds == Budget(5.0, 65536, 100_000)
    assert [(verify["inputs"], verify["layers_checked"] > 3) for verify in verified] == [(1, True)] * 3
    plain, narrow, wide = measurements
    assert not any(verify.error for verify in measurements)
    assert narrow.snr < plain.snr and narrow.loss >= plain.loss
    assert wide.instructions > plain.instructions > 50_000
    tight = Budget(5.0, 65536, plain.instructions)
    assert tight.exceeded(wide) == "instructions" and best(measurements, tight) is best(measurements, bounds) is plain
    assert plain in pareto_front(measurements)
