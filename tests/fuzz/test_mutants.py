"""Mutants of TFLite and ONNX files, and of recipes.

Each runs exactly as LiteRT or ONNX Runtime says, or is refused in one to five lines.

    pytest tests/fuzz --fuzz 1000 --fuzz-seed 7               that many, of another seed
    pytest tests/fuzz --fuzz-only models:421 --fuzz-seed 7    one of them again, with what it said

The same seed gives the same mutants, whatever their number.
"""

import os
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz import campaign
from tests.fuzz.mutate_model import model_mutant
from tests.fuzz.mutate_recipe import recipe_mutant
from tests.fuzz.outcome import FAULTS, Outcome

_FEW, _ALL = 14, 300  # mutants of a run that asks for no number: without --all, and with it
_SHOWN = 40  # failures with their messages; all are counted
# Of a hundred mutants.
_SHARES = {"models": 50, "onnx": 10, "recipes": 40}


def _workers() -> int:
    """One where pytest itself runs in several processes."""
    return 1 if "PYTEST_XDIST_WORKER" in os.environ else min(os.cpu_count() or 1, 8)


def _jobs(config: pytest.Config) -> list[campaign.Job]:
    wanted, seed = config.getoption("--fuzz"), config.getoption("--fuzz-seed")
    kinds = [kind for kind in campaign.KINDS if kind != "onnx" or find_spec("onnx")]
    kind, _, index = config.getoption("--fuzz-only").partition(":")
    if kind:
        return [campaign.Job(kind, seed, int(index))]
    count = wanted if wanted is not None else _ALL if config.getoption("--all") else _FEW
    return [campaign.Job(kind, seed, index) for kind in kinds for index in range(count * _SHARES[kind] // 100)]


Results = Sequence[tuple[campaign.Job, Outcome]]


def test_mutants_run_exactly_or_are_refused(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    jobs = _jobs(request.config)
    if not jobs:
        pytest.skip("no mutants: --fuzz 0")
    results = []
    for job, outcome in campaign.run(jobs, tmp_path, _workers()):
        results.append((job, outcome))
        if request.config.getoption("--fuzz-only"):
            print(f"{_kept(job, tmp_path)}\n{outcome.verdict}\n{outcome.message}")
    for kind in dict.fromkeys(job.kind for job in jobs):
        request.node.user_properties.append(("fuzz", _counts(kind, jobs[0].seed, results)))
    failed = [(job, outcome) for job, outcome in results if outcome.faults]
    if failed:
        pytest.fail(_failures(failed), pytrace=False)


def _counts(kind: str, seed: int, results: Results) -> str:
    """One line: what became of the mutants of a kind."""
    outcomes = [outcome for job, outcome in results if job.kind == kind]
    counts = Counter("failed" if outcome.faults else outcome.verdict for outcome in outcomes)
    shown = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return f"{kind} of seed {seed}: {len(outcomes)} mutants, {shown}"


def _failures(failed: Results) -> str:
    """Each failure with the command that repeats it, worst first."""
    texts = [f"{len(failed)} mutants failed"]
    for job, outcome in sorted(failed, key=lambda pair: min(map(FAULTS.index, pair[1].faults)))[:_SHOWN]:
        lines = [line[:300].encode("unicode_escape").decode() for line in outcome.message.splitlines()[-8:]]
        texts.append("\n    ".join([f"{', '.join(outcome.faults)}: {job}", *lines]))
    return "\n".join(texts)


def _kept(job: campaign.Job, folder: Path) -> str:
    """What the mutant is, and its file, which is kept in `folder`."""
    if job.kind == "onnx":
        from tests.fuzz.mutate_onnx import onnx_mutant

        mutant, ending = onnx_mutant(job.seed, job.index), "onnx"
    elif job.kind == "models":
        mutant, ending = model_mutant(job.seed, job.index), "tflite"
    else:
        mutant, ending = recipe_mutant(job.seed, job.index), "yaml"
    path = folder / f"m{job.index}.{ending}"
    path.write_bytes(mutant.data)
    return f"{mutant.made}\n{path}"
