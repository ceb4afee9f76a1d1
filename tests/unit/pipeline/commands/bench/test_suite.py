"""The suite file, the cases that follow from it, and the pages with their figures."""

from pathlib import Path

import pytest

from pipeline.commands.bench.cases import file_cases, models_folder, select, suite_cases
from pipeline.commands.bench.check import limit_error
from pipeline.commands.bench.page import figures_section, replace_section, short_section
from pipeline.commands.bench.ratio import short_ratios
from pipeline.commands.bench.record import read_records
from pipeline.commands.bench.suite import load_suite
from pipeline.errors import PipelineError
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipe
from pipeline.recipes.targets import load_targets
from stages.support.system.installation import INSTALLATION as ROOT
from tests.unit.pipeline.commands.bench.bench_support import suite_file


def test_the_projects_own_suite_holds_recipes_that_load() -> None:
    """Each row's recipe, target, model entry and options are what the recipe language knows."""
    suite = load_suite()
    registry = default_registry()
    cases = suite_cases(suite.rows, ROOT, models_folder(ROOT))
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        if case.recipe is not None:
            loaded = load_recipe(case.recipe, root=ROOT, registry=registry)
            assert (loaded.recipe.name, loaded.target.name) == case.id


def test_stored_figures_are_within_the_limits_of_the_suite() -> None:
    suite, records = load_suite(), read_records(ROOT / "docs" / "bench.json")
    bounded = [case for case in suite_cases(suite.rows, ROOT, models_folder(ROOT)) if case.at_most]
    assert [case.title for case in bounded if case.id not in records] == []
    assert [line for case in bounded if (line := limit_error(case, records[case.id]))] == []
    assert short_ratios(suite, records) == []


def test_row_without_its_file_is_skipped_with_the_reason_and_runs_with_it(tmp_path: Path) -> None:
    rows = load_suite(suite_file(tmp_path)).rows[2:]
    (absent,) = suite_cases(rows, tmp_path, tmp_path / "models")
    assert absent.recipe is None
    assert absent.skipped.startswith("folder/real.tflite is not in the models folder (FIRMLINE_MODELS")
    file = tmp_path / "models" / "folder" / "real.tflite"
    file.parent.mkdir(parents=True)
    file.touch()
    (case,) = suite_cases(rows, tmp_path, tmp_path / "models")
    assert case.recipe is not None and case.skipped == ""
    assert case.recipe["model"] == {"file": "models/folder/real.tflite"}


def test_every_file_of_a_folder_is_a_row_on_each_target(tmp_path: Path) -> None:
    for name in ("b.tflite", "sub/a 1.tflite", "sub/readme.md"):
        path = tmp_path / "models" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    loose = load_suite(suite_file(tmp_path)).models
    cases = file_cases(tmp_path / "models", loose, tmp_path)
    assert [case.id for case in cases] == [
        ("b", "rv64-rvp"),
        ("b", "rv64-scalar"),
        ("sub/a 1", "rv64-rvp"),
        ("sub/a 1", "rv64-scalar"),
    ]
    recipe = cases[2].recipe
    assert recipe is not None
    # A recipe's name is a folder's, so it has neither slashes nor spaces.
    assert recipe["name"] == "sub_a_1"
    assert recipe["model"] == {"file": "models/sub/a 1.tflite"}
    for folder, message in ((tmp_path / "none", "no such folder"), (tmp_path / "empty", "no \\*.tflite file")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(PipelineError, match=message):
            file_cases(folder, loose, tmp_path)


def test_selection(tmp_path: Path) -> None:
    cases = suite_cases(load_suite(suite_file(tmp_path)).rows, tmp_path, tmp_path)
    selected = select(cases, "real, net*", "rv64-rvp", load_targets(ROOT))
    assert [case.id for case in selected] == [("net", "rv64-rvp"), ("real", "rv64-rvp")]
    for only, targets, message in (
        ("nat", "", "only=nat: no row matches\nknown rows: net, net_fp32, real"),
        ("", "pdp11", "unknown target 'pdp11'\nknown targets: rv64-rvp,"),
        ("real", "rv64-scalar", "no selected row has such a target"),
    ):
        with pytest.raises(PipelineError, match=message):
            select(cases, only, targets, load_targets(ROOT))


def test_the_pages_are_of_what_is_stored() -> None:
    """docs/reference/figures.md has docs/bench.json; README.md has the rows that the suite shows."""
    suite = load_suite()
    cases = suite_cases(suite.rows, ROOT, ROOT / "nowhere")
    records = read_records(ROOT / "docs/bench.json")
    for name, section in (("docs/reference/figures.md", figures_section), ("README.md", short_section)):
        text = (ROOT / name).read_text()
        assert replace_section(text, section(cases, suite, records), name) == text, f"doit bench --update writes {name}"
    assert {(row_on.row, row_on.target) for row_on in suite.shown} <= records.keys()
    shown = {row_on.row for row_on in suite.shown}
    assert not any(row.file or row.model for row in suite.rows if row.name in shown), "rows that run by a recipe's name"
    (ic02,) = [line for line in (ROOT / "docs/reference/figures.md").read_text().splitlines() if "| ic02_m4 |" in line]
    assert ic02.endswith("| none published |  |"), "a row's note stands where figures of others would"
