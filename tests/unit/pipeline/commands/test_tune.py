"""`doit tune`: what is measured of a network, what its recipe then chooses, and what goes wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.api import run_recipe
from pipeline.commands.tune import tune
from pipeline.errors import PipelineError, RecipeError, StageFailed
from pipeline.project import Project
from stages.calibrate import measure as measuring

ROOT = Path(__file__).resolve().parents[4]
RECIPE = """\
schema: 1
target: rv32-rvp
model: {op: conv2d, shape: [6, 6, 8], out_channels: 12, kernel: [3, 3]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "net.yaml").write_text(RECIPE)
    shutil.copy(ROOT / "pipeline.yaml", tmp_path)
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    return Project(tmp_path)


def plan(project: Project, **variables: str) -> tuple[str, dict[str, Any]]:
    """The key of tensorize, and what it decided about the convolution."""
    result = run_recipe("net", variables, until="tensorize", root=project)
    layers = json.loads((result.artifacts["tensorize"] / "plan.json").read_text())["layers"]
    return str(result.artifacts["tensorize"]), next(layer for layer in layers if layer["op"] == "conv2d")


def test_a_recipe_chooses_by_its_tuning(project: Project) -> None:
    path = project.root / "recipes/net.tuning.json"
    before, own = plan(project)
    assert own["cost_source"] != "tuned"
    missing = tune("net", check=True, root=project)
    assert missing.path == path and not path.exists() and len(missing.missing) > 3 and not missing.is_current
    made = tune("net", root=project)
    assert made.measured == made.entries >= len(missing.missing)
    assert 0 < made.now <= made.before
    assert tune("net", check=True, root=project).is_current
    assert tune("net", root=project).measured == 0
    after, chosen = plan(project)
    assert after != before
    assert chosen["cost_source"] == "tuned" and chosen["why"].endswith("(tuned)")
    assert {one["cost_source"] for one in chosen["alternatives"] if one["cost"]} == {"tuned"}
    off, without = plan(project, set="stages.tensorize.tuning=off")
    assert (off, without["kernel"]) == (before, own["kernel"])

    # What the file says is what counts: the dearest made the cheapest.
    raw = json.loads(path.read_text())
    layers = raw["targets"]["rv32-rvp"]["layers"]
    (row,) = (row for name, row in layers.items() if name.startswith("conv2d int8[1x6x6x8] -> int8[1x6x6x12] "))
    dearest = max(row, key=row.__getitem__)
    row[dearest] = 1
    path.write_text(json.dumps(raw))
    key, chosen = plan(project)
    assert key != after and (chosen["kernel"], chosen["cost"]) == (dearest.split(" ")[0], 1)
    other, _ = plan(project, target="rv64-rvp")  # a file that has nothing of the core
    assert other != key

    report = run_recipe("net", root=project).report
    assert (
        report is not None
        and "by measurements of this network's layers" in (project.root / "build/net/rv32-rvp/report.md").read_text()
    )


def test_what_is_stale(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tune("net", root=project)
    path = project.root / "recipes/net.tuning.json"
    raw = json.loads(path.read_text())
    raw["targets"]["rv32-rvp"]["kernels"]["rvp.gemm_s8"] = "of another version"
    path.write_text(json.dumps(raw))
    changed = tune("net", check=True, root=project)
    assert changed.stale == ("rvp.gemm_s8",)
    assert changed.missing and all(line.startswith("rvp.gemm_s8") for line in changed.missing)
    result = run_recipe("net", until="tensorize", root=project)
    warnings = json.loads((result.artifacts["tensorize"] / "plan.json").read_text())["warnings"]
    assert any(w.startswith("rvp.gemm_s8 has changed since the recipe was tuned") for w in warnings)
    again = tune("net", root=project)
    assert again.measured == len(changed.missing) and again.entries == first.entries

    (project.root / "recipes/net.yaml").write_text(RECIPE.replace("[6, 6, 8]", "[5, 6, 8]"))
    moved = tune("net", check=True, root=project)
    assert len(moved.missing) == first.entries and moved.lost
    assert tune("net", root=project).lost == moved.lost
    assert tune("net", check=True, root=project).is_current


def test_kernels_that_are_no_more_go_from_the_file(project: Project) -> None:
    first = tune("net", root=project)
    raw = json.loads(first.path.read_text())
    raw["targets"]["rv32-rvp"]["kernels"]["rvp.renamed_s8"] = "0123456789abcdef"
    for row in raw["targets"]["rv32-rvp"]["layers"].values():
        row["rvp.renamed_s8 mr=4"] = 1
    first.path.write_text(json.dumps(raw))
    checked = tune("net", check=True, root=project)
    assert (checked.stale, checked.missing, checked.is_current) == (("rvp.renamed_s8",), (), False)
    assert "rvp.renamed_s8" in first.path.read_text()
    again = tune("net", root=project)
    assert (again.measured, again.entries) == (0, first.entries)
    assert "rvp.renamed_s8" not in first.path.read_text()
    assert tune("net", check=True, root=project).is_current


def test_figures_are_of_the_options_and_tools_that_compile_the_network(project: Project) -> None:
    first = tune("net", root=project)
    usual, raw = figures(first.path), json.loads(first.path.read_text())
    assert raw["targets"]["rv32-rvp"]["tools"]["options"] == "-O2"
    (project.root / "recipes/net.yaml").write_text(RECIPE + "stages: {compile: {optimize: -O1, flags: [-fno-gcse]}}\n")
    checked = tune("net", check=True, root=project)
    assert checked.others == ("options: -O2 when it was measured, now -O1 -fno-gcse",)
    assert checked.entries == 0 and len(checked.missing) > 3 and not checked.is_current
    slow = tune("net", root=project)
    assert slow.others == checked.others and slow.measured == slow.entries
    now = figures(slow.path)
    apart = {name: now[name] / usual[name] for name in now.keys() & usual.keys() if " generic." in name}
    assert max(abs(ratio - 1) for ratio in apart.values()) > 0.01, apart
    assert tune("net", check=True, root=project).is_current

    raw = json.loads(slow.path.read_text())
    raw["targets"]["rv32-rvp"]["tools"]["compiler"] = "1.2.3"
    slow.path.write_text(json.dumps(raw))
    other = tune("net", check=True, root=project)
    assert not other.is_current and other.others[0].startswith("compiler: 1.2.3 when it was measured, now ")


def test_an_interrupted_run_goes_on(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = measuring.measure

    def interrupted(cases: Any, target: Any, **options: Any) -> Any:
        for number, pair in enumerate(measure(cases, target, **options)):
            if number == 3:
                raise KeyboardInterrupt
            yield pair

    monkeypatch.setattr("stages.calibrate.tuning.measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune("net", root=project)
    monkeypatch.setattr("stages.calibrate.tuning.measure", measure)
    kept = tune("net", check=True, root=project)
    assert kept.entries == 3
    rest = tune("net", root=project)
    assert rest.entries == 3 + rest.measured
    whole = figures(rest.path)
    assert tune("net", again=True, root=project).measured == rest.entries
    assert figures(rest.path) == pytest.approx(whole, abs=3)  # an address may take an instruction more to make


def figures(path: Path) -> dict[str, int]:
    layers = json.loads(path.read_text())["targets"]["rv32-rvp"]["layers"]
    return {f"{name} {variant}": count for name, row in layers.items() for variant, count in row.items()}


def test_cores_share_the_file(project: Project) -> None:
    first = tune("net", root=project)
    tune("net", {"target": "rv32-scalar"}, root=project)
    raw = json.loads(first.path.read_text())["targets"]
    assert [*raw] == ["rv32-rvp", "rv32-scalar"]
    assert sum(map(len, raw["rv32-rvp"]["layers"].values())) == first.entries


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "net.tuning.json cannot be read"),
        ("[1]", "net.tuning.json is no tuning of format 1"),
        ('{"format": 1, "targets": {"rv32-rvp": {}}}', "net.tuning.json, rv32-rvp: has no tools, kernels and layers"),
        (
            '{"format": 1, "targets": {"rv32-rvp": {"tools": {}, "kernels": {}, "layers": {"a": {"b": "x"}}}}}',
            "net.tuning.json, rv32-rvp: layer 'a' has figures that are no instructions",
        ),
    ],
)
def test_ruined_file(project: Project, text: str, says: str) -> None:
    (project.root / "recipes/net.tuning.json").write_text(text)
    for use in (lambda: tune("net", root=project), lambda: run_recipe("net", until="tensorize", root=project)):
        with pytest.raises((PipelineError, StageFailed)) as caught:
            use()
        assert says in str(caught.value) and "doit tune recipe=net --all" in str(caught.value)


def test_what_cannot_be_tuned(project: Project) -> None:
    with pytest.raises(RecipeError, match="unknown recipe 'nte'; did you mean 'net'"):
        tune("nte", root=project)
    with pytest.raises(PipelineError, match="target host counts no instructions"):
        tune("net", {"target": "host"}, root=project)
    with pytest.raises(PipelineError, match="has an accelerator"):
        tune("net", {"target": "rv32-ne16"}, root=project)
    with pytest.raises(PipelineError, match="is Firmline's own: its tuning would lie in the installation"):
        tune("kws_rvp", root=project)
    own = RECIPE + "stages: {tensorize: {tuning: other.json}}\n"
    (project.root / "recipes/net.yaml").write_text(own)
    with pytest.raises(PipelineError, match=r"says itself which tuning it reads: other\.json"):
        tune("net", root=project)
    with pytest.raises(RecipeError, match=r"tensorize: file other\.json does not exist"):
        run_recipe("net", until="tensorize", root=project)
