"""The fuzz command itself: the same seed makes the same mutants, and nothing that goes wrong is overlooked."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from pipeline.errors import StageFailed
from stages.base import StageError
from stages.quantize.options import QuantizeOptions
from tests.fuzz import campaign, disasters, mutate_recipe
from tests.fuzz.mutate_model import model_mutant
from tests.fuzz.mutate_recipe import recipe_mutant
from tests.fuzz.outcome import FAULTS, Outcome, message_faults
from tests.fuzz.run_model import Bench, judged

ONNX = [import_module("tests.fuzz.mutate_onnx")] if find_spec("onnx") else []  # of an optional group
PLACE = re.compile(r"operator \d+")


@pytest.mark.parametrize("make", [model_mutant, recipe_mutant, *(one.onnx_mutant for one in ONNX)])
def test_the_same_numbers_make_the_same_mutant(make) -> None:
    made = [make(1, index) for index in range(20)]
    assert made == [make(1, index) for index in range(20)]
    assert made != [make(2, index) for index in range(20)]


def test_every_option_of_quantize_can_be_mutated() -> None:
    given = {key for seed in mutate_recipe.WRITTEN for key in seed.get("stages", {}).get("quantize", {})}
    # Of networks that are integers already.
    assert given | {"rounding"} == QuantizeOptions.model_fields.keys()


def test_what_ends_hangs_or_eats_a_worker_is_counted_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "BYTES", 1 << 30)
    jobs = [campaign.Job("disasters", 1, index) for index in range(6) if index != disasters.HANG]
    found = {job.index: outcome for job, outcome in campaign.run(jobs, tmp_path, 1)}
    monkeypatch.setattr(campaign, "SECONDS", 3.0)  # for the hang alone: a slow machine takes longer to fill a GiB
    hang, fine = (campaign.Job("disasters", 1, index) for index in (disasters.HANG, disasters.FINE))
    found |= {job.index: outcome for job, outcome in campaign.run([hang, fine], tmp_path, 1)}
    assert found[disasters.HANG].faults == ("hang",)
    assert found[disasters.CRASH] == Outcome("ended", "the process ended with SIGABRT", ("crash",))
    assert found[disasters.EAT].faults == ("too much memory",)
    assert found[disasters.RAISE].faults == ("traceback",) and "on purpose" in found[disasters.RAISE].message
    assert found[disasters.PRINT].faults == ("stray output",) and "on purpose" in found[disasters.PRINT].message
    assert found[disasters.FINE] == Outcome("done")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("", "empty message"),
        ("operator 3:\nTraceback (most recent call last):\n  x", "traceback"),
        ("import: unexpected ValueError: operator 3", "unexpected"),
        ("operator 3 cannot be converted by TVM's front end: -1", "somebody else's words"),
        ("operator 3: list index out of range", "somebody else's words"),
        ("operator 3 'a\x1b[31mb'", "raw control characters"),
        ("operator 3 'a\u202eb'", "raw control characters"),
        ("operator 3\n2\n3\n4\n5\n6", "more than five lines"),
        (f"operator 3 {'x' * 1000}", "long line"),
        ("something is wrong", "names no place"),
    ],
)
def test_faults_of_messages(message: str, fault: str) -> None:
    assert fault in FAULTS
    assert fault in message_faults(message, PLACE)


def test_a_good_message_has_no_fault() -> None:
    assert message_faults("operator 3 (ADD) of 'größe', unexpected end\n2\n3\n4\n\tfive\n", PLACE) == ()


def test_what_a_run_leaves_is_found_and_cleared(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    recipe = {"schema": 1, "target": "host", "name": "x", "model": {"op": "relu", "shape": [3]}}
    assert judged(bench, recipe, "import", PLACE) == Outcome("ran to import")
    artifacts = bench.store / "artifacts"
    assert not list(artifacts.iterdir())
    (artifacts / "ab" / "abcd").mkdir(parents=True)
    (bench.temporary / "left").write_text("")
    assert bench.leftovers() == ("half artifact", "temporary files left")
    assert bench.leftovers() == ()


@pytest.mark.parametrize(
    ("message", "faults"),
    [
        ("3 of 40 output values differ from LiteRT 2.3.0 BUILTIN_REF\nthe first is layer 3", ("wrong output",)),
        ("outputs equal LiteRT 2.3.0 BUILTIN_REF, but a layer differs\nlayer 3", ("wrong output",)),
        ("operator 3 is refused by LiteRT", ()),
        ("file is missing", ("names no place",)),
    ],
)
def test_outputs_that_differ_are_no_refusal(
    message: str, faults: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> None:
        raise StageFailed("verify", StageError(message))

    monkeypatch.setattr("tests.fuzz.run_model.run_recipe", run)
    assert judged(Bench(tmp_path), {}, "", PLACE).faults == faults
