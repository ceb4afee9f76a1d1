"""`doit tune`: what is measured of a network, what its recipe then chooses, and what goes wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline.api import run_recipe
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.tune import Outcome, _run, tune
from pipeline.errors import PipelineError, RecipeError, StageFailed
from pipeline.project import Project
from pipeline.recipes.targets import load_targets
from stages.base import StageError
from stages.calibrate import measure as measuring
from stages.calibrate.tuning import Tuning

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
    assert json.loads((Path(before) / "plan.json").read_text())["tuning"] is None
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
    found = report and next(one for one in report["tuning"]["layers"] if one["now"] == dearest)
    assert found and found["now_cost"] == 1 and found["before"].startswith(own["kernel"])
    assert report["tuning"]["now"] < report["tuning"]["before"]
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
    measure, path = measuring.measure, project.root / "recipes/net.tuning.json"

    def interrupted(cases: Any, target: Any, *, after: int, **options: Any) -> Any:
        for number, pair in enumerate(measure(cases, target, **options)):
            if number == after:
                raise KeyboardInterrupt
            yield pair

    for after in (0, 3):
        monkeypatch.setattr("stages.calibrate.tuning.measure", partial(interrupted, after=after))
        with pytest.raises(KeyboardInterrupt):
            tune("net", root=project)
        assert path.is_file() == bool(after)
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


def test_cycles_are_tuned_for_each_board_beside_instructions(project: Project) -> None:
    """Of the model's own layers, with the board's wait states: the report says so, and prices alternatives by them."""
    board = {"target": "nucleo-l4r5zi", "set": "stages.tensorize.optimize_for=cycles"}
    tune("net", {"target": "cortex-m4"}, root=project)
    (project.root / "recipes/net.yaml").write_text(RECIPE + "stages: {tensorize: {optimize_for: cycles}}\n")
    made = tune("net", {"target": "nucleo-l4r5zi"}, root=project)
    assert (made.unit, made.measured) == ("cycles", made.entries) and 0 < made.now <= made.before
    raw = json.loads(made.path.read_text())["targets"]
    assert [*raw] == ["cortex-m4", "nucleo-l4r5zi in cycles"]
    cycles, instructions = raw["nucleo-l4r5zi in cycles"]["layers"], raw["cortex-m4"]["layers"]
    both = [(cycles[text][name], count) for text in instructions for name, count in instructions[text].items()]
    assert all(1.1 * count < taken < 5 * count for taken, count in both)

    result = run_recipe("net", board, root=project)
    report = result.report
    assert report is not None and report["chosen_by"] == {
        "unit": "cycles",
        "model": "cortex-m4",
        "memory": report["estimated_cycles"]["memory"],
    }
    layer = next(one for one in report["layers"] if one["op"] == "conv2d")
    assert layer["cost_source"] == "tuned" and layer["why"].startswith("fewest cycles of ")
    assert layer["cost"] == pytest.approx(layer["estimated_cycles"], rel=0.1) and layer["cost"] > layer["instructions"]
    page = (project.root / "build/net/nucleo-l4r5zi/report.html").read_text()
    assert "cycles, tuned</li>" in page and "estimated cycles of the timing model cortex-m4" in page

    # Figures of another timing model are not the target's.
    raw["nucleo-l4r5zi in cycles"]["tools"]["timing"] = "0" * 16
    made.path.write_text(json.dumps({"format": 1, "targets": raw}))
    _, own = plan(project, **board)
    assert own["cost_source"] != "tuned"
    checked = tune("net", {"target": "nucleo-l4r5zi"}, check=True, root=project)
    assert checked.others[0].startswith("timing: 0000000000000000 when it was measured, now ")
    with pytest.raises(PipelineError, match="needs a timing model, and none is known of rv32-rvp"):
        tune("net", root=project)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "net.tuning.json cannot be read"),
        ("[" * 100_000, "net.tuning.json cannot be read: it is nested too deeply"),
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


def test_all_is_written_anew_over_a_ruined_file(project: Project) -> None:
    path = project.root / "recipes/net.tuning.json"
    target = load_targets(project)["rv32-rvp"]
    for content in (b"", b"[]", b"\xff\xfe", b"<<<<<<< HEAD\n", b'{"format": 1, "targets": {"a": 1}}'):
        path.write_bytes(content)
        Tuning.read(path, target, {}, again=True).write()
        assert [*json.loads(path.read_text())["targets"]] == ["rv32-rvp"]
    path.write_bytes(b'{"format": 1, "targ')
    made = tune("net", again=True, root=project)
    assert made.measured == made.entries > 0


def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.root / "recipes/net.tuning.json"
    path.mkdir()
    with pytest.raises(PipelineError, match=r"^recipes/net\.tuning\.json cannot be written: Is a directory$"):
        tune("net", root=project)
    path.rmdir()

    def refused(_: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("stages.system.asides.aside", refused)
    with pytest.raises(PipelineError, match=r"^recipes/net\.tuning\.json cannot be written: Read-only file system$"):
        tune("net", root=project)
    assert not (project.root / "build").exists()
    target = load_targets(project)["rv32-rvp"]
    with pytest.raises(StageError, match=r"^net\.tuning\.json cannot be written: Read-only file system$"):
        Tuning.read(path, target, {}).write()


def test_recipes_are_named_as_for_doit_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.root / "recipes/other_net.yaml").write_text(RECIPE)
    monkeypatch.setattr("pipeline.commands.tune.here", lambda: project)
    asked: list[str] = []

    def outcome(name: str, given: Any, **_: Any) -> Outcome:
        asked.append(name)
        assert not given
        return Outcome(project.root / "x.json", 0, (), ("a",) if name == "net" else (), ())

    monkeypatch.setattr("pipeline.commands.tune.tune", outcome)
    options = {"all": False, "check": True, "json": False}
    for words, given, names, code in (
        (["net"], {}, ["net"], PENDING),
        (["other_net"], {}, ["other_net"], 0),
        ([], {"recipe": "other_net"}, ["other_net"], 0),
        (["*net"], {}, ["net", "other_net"], PENDING),
        ([], {"recipe": "other_net,net"}, ["other_net", "net"], PENDING),
        ([str(project.root / "recipes/net.yaml")], {}, ["net"], PENDING),
    ):
        asked.clear()
        assert (_run(dict(given), options, words), asked) == (code, names)
    assert "other_net:\nx.json" in capsys.readouterr().out.replace(str(project.root) + "/", "")
    for words, says in (
        (["nte"], "unknown recipe 'nte'; did you mean 'net'"),
        ([], "which recipe?"),
        (["net:emit"], "'net:emit' is one stage, not a recipe"),
    ):
        with pytest.raises(RecipeError, match=re.escape(says)):
            _run({}, options, words)


def test_another_option_of_tensorize_fills_its_own_entry_and_loses_nothing(project: Project) -> None:
    (project.root / "recipes/net.yaml").write_text(RECIPE.replace("rv32-rvp", "ibex-simple-system"))
    tune("net", root=project)
    path = project.root / "recipes/net.tuning.json"
    first = json.loads(path.read_text())
    made = tune("net", {"set": "stages.tensorize.optimize_for=cycles"}, root=project)
    both = json.loads(path.read_text())
    assert made.unit == "cycles" and made.measured > 0
    assert both["targets"].keys() - first["targets"].keys() == {"ibex-simple-system in cycles"}
    assert tune("net", {"set": "stages.tensorize.simplify=off"}, check=True, root=project).lost == ()
    for other in ("stages.layout.default=NCHW", "stages.tensorize.optimize_for=cycles,stages.compile.optimize=-O3"):
        with pytest.raises(RecipeError, match="a tuning is measured with other options of tensorize only"):
            tune("net", {"set": other}, root=project)


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
