"""Mutants of TFLite and ONNX files, and of recipes.

Each runs exactly as LiteRT or ONNX Runtime says, or is refused in one to five lines.

    pytest tests/fuzz --fuzz 1000 --fuzz-seed 7               that many, of another seed
    pytest tests/fuzz --fuzz-only models:421 --fuzz-seed 7    one of them again, with what it said

The same seed gives the same mutants, whatever their number.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.fuzz import campaign
from tests.fuzz.mutate_model import model_mutant
from tests.fuzz.mutate_recipe import recipe_mutant
from tests.fuzz.table import failures, summary

_FEW, _ALL = 40, 300  # mutants of a run that asks for no number: without --all, and with it
# Of a hundred mutants.
_SHARES = {"models": 50, "onnx": 10, "recipes": 40}


def _workers() -> int:
    """One where pytest itself runs in several processes."""
    return 1 if "PYTEST_XDIST_WORKER" in os.environ else min(os.cpu_count() or 1, 8)


@pytest.mark.parametrize("kind", campaign.KINDS)
def test_mutants_run_exactly_or_are_refused(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    wanted, seed = request.config.getoption("--fuzz"), request.config.getoption("--fuzz-seed")
    if kind == "onnx":
        pytest.importorskip("onnx")
    usual = _ALL if request.config.getoption("--all") else _FEW
    count = usual if wanted is None else wanted
    only = request.config.getoption("--fuzz-only")
    if only:
        chosen, _, index = only.partition(":")
        if chosen != kind:
            pytest.skip(f"--fuzz-only {only}")
        indices = [int(index)]
    else:
        indices = list(range(count * _SHARES[kind] // 100))
    if not indices:
        pytest.skip("no mutants: --fuzz 0")
    tally = campaign.Tally()
    for job, outcome in campaign.run([campaign.Job(kind, seed, index) for index in indices], tmp_path, _workers()):
        tally.add(job, outcome)
        if only:
            print(f"{_kept(job, tmp_path)}\n{outcome.verdict}\n{outcome.message}")
    request.node.user_properties.append(("fuzz", json.dumps(summary(kind, seed, tally))))
    if tally.failed:
        pytest.fail(failures(tally), pytrace=False)


def _kept(job: campaign.Job, folder: Path) -> str:
    """What the mutant is; a file is kept in `folder`."""
    if job.kind in ("models", "onnx"):
        from tests.fuzz.mutate_onnx import onnx_mutant

        make, ending = (model_mutant, "tflite") if job.kind == "models" else (onnx_mutant, "onnx")
        model, path = make(job.seed, job.index), folder / f"m{job.index}.{ending}"
        path.write_bytes(model.data)
        return f"{model.made}\n{path}"
    recipe, path = recipe_mutant(job.seed, job.index), folder / f"r{job.index}.yaml"
    path.write_bytes(recipe.data)
    return f"{recipe.made}\n{path}"
