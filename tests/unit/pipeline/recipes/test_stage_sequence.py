"""Stages that a recipe inserts, disables, moves or replaces."""

from typing import Any

import pytest

from pipeline.errors import StageFailed
from pipeline.plugins.registry import Registry
from stages.base import Job, StageConfig
from tests.unit.pipeline.conftest import RECIPE, Doit, FakeProject
from tests.unit.pipeline.fake_stages import Fake, FakeReport, OtherEmit, Strip, fake_registry
from tests.unit.pipeline.recipes.test_loader import load, refused

STRIP = "  strip: {after: emit}\n"


class Note(Fake):
    """Reads import, and is read by nobody."""

    kind = "note"
    config = StageConfig
    consumes = ("import",)

    def run(self, job: Job[Any]) -> None:
        self.note()


class Summary(FakeReport):
    """A report that needs no firmware."""

    consumes = ("import",)  # type: ignore[assignment]
    may_consume = ("compile",)


@pytest.fixture
def project(project: FakeProject) -> FakeProject:
    """The fake project with stages that are in no sequence by default."""
    project.registry = fake_registry(Strip(), OtherEmit(), Note())
    return project


def says(project: FakeProject, text: str) -> None:
    """The usual recipe with these lines more under `stages:`."""
    project.recipe(RECIPE + text)


def names(project: FakeProject, name: str = "demo", **variables: str) -> tuple[str, ...]:
    return load(project, name, **variables).sequence.names


def test_an_inserted_stage_replaces_the_output_of_an_earlier_one(project: FakeProject) -> None:
    project.run()
    project.ran()
    says(project, STRIP)
    run = project.run()
    assert project.ran() == ["strip", "compile", "report"]
    assert [stage.kind for stage in run.stages] == ["import", "emit", "strip", "compile", "report"]
    assert (run.artifacts["compile"] / "firmware.elf").read_text() == "O2 stripped 4 weights\n"
    # The artifact of the last stage with the role is published.
    assert (run.folder / "src/model.c").read_text() == "stripped 4 weights\n"
    says(project, "  strip: {after: emit, word: neat}\n")
    project.run()
    assert project.ran() == ["strip", "compile", "report"]
    project.recipe(RECIPE)
    assert all(stage.cached for stage in project.run().stages)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  note: {after: import}\n  strip: {after: emit}\n", "import note emit strip compile report"),
        ("  note: {after: strip}\n  strip: {after: emit}\n", "import emit strip note compile report"),
        # Two stages after the same stage run in the order of the recipe.
        ("  strip: {after: emit}\n  note: {after: emit}\n", "import emit strip note compile report"),
        ("  note: {after: report}\n", "import emit compile report note"),
        ("  strip: false\n", "import emit compile report"),
    ],
)
def test_order(project: FakeProject, text: str, expected: str) -> None:
    says(project, text)
    assert names(project) == tuple(expected.split())


def test_a_stage_replaces_another(project: FakeProject) -> None:
    project.edit("recipes/demo.yaml", "emit: {unroll: 4}", "emit: {use: other_emit, quality: 3}")
    run = project.run()
    assert project.ran() == ["import", "other_emit", "compile", "report"]
    assert [stage.kind for stage in run.stages] == ["import", "emit", "compile", "report"]
    assert (run.folder / "src/model.c").read_text() == "other 3\n"
    with pytest.raises(StageFailed) as caught:
        project.run(set="stages.emit.quality=-1")
    # The error refers to the stage by its own kind.
    assert str(caught.value) == "set=stages.emit.quality=-1: emit: worse than nothing"
    project.edit("recipes/demo.yaml", "quality: 3", "unroll: 3")
    assert "recipes/demo.yaml:6:27: unknown key 'unroll'\n" in refused(project)
    assert refused(project).splitlines()[-1] == "known keys: quality, after, use"


def test_disabled_stages(project: FakeProject) -> None:
    project.registry = Registry([*list(fake_registry())[:3], Summary()])
    folder = project.run().folder
    assert (folder / "firmware.elf").exists()
    says(project, "")
    project.edit("recipes/demo.yaml", "  compile:\n    opt: O2\n    flags: [-g]\n", "  compile: false\n")
    run = project.run()
    assert [stage.kind for stage in run.stages] == ["import", "emit", "report"]
    assert run.report is not None
    # Files of the earlier run are deleted.
    assert sorted(path.name for path in folder.iterdir()) == ["log.txt", "report.json", "report.md", "src"]
    run = project.run(set="stages.report=false,stages.emit=false")
    assert (run.report, sorted(path.name for path in folder.iterdir())) == (None, ["log.txt"])


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "  strip: {after: emitt}\n",
            "10:18: stages.strip.after: the recipe has no stage 'emitt'; did you mean 'emit'?",
            "known stages: import, emit, compile, report",
        ),
        ("  strip:\n", "10:3: stage 'strip' is not in the default sequence and needs `after`", ""),
        ("  strip: {after: note}\n  note: {after: strip}\n", "11:17: `after` forms a cycle: strip -> note -> strip",
         ""),
        ("  strip: {after: import}\n", "10:18: stage 'strip' consumes 'emit', which no stage before it provides",
         "emit runs later"),
        ("  import: false\n", "10:11: stage 'emit' consumes 'import', which is disabled",
         "disable it too: `emit: false`"),
        ("  report: {use: strip}\n",
         "10:17: stages.report.use: 'strip' cannot replace 'report': it provides emit instead of report", ""),
    ],
)  # fmt: skip
def test_mistakes(project: FakeProject, text: str, message: str, hint: str) -> None:
    says(project, text)
    first, *_, last = refused(project).splitlines()
    assert first.startswith(f"recipes/demo.yaml:{message}") and (not hint or last == hint)


def test_an_extending_recipe_overrides_the_sequence(project: FakeProject) -> None:
    says(project, "  strip: {after: emit, word: neat}\n  report: false\n")
    project.recipe("schema: 1\nextends: demo\nstages: {report: {}, strip: {word: tidy}}\n", "child")
    assert names(project, "child") == ("import", "emit", "strip", "compile", "report")
    assert load(project, "child").recipe.config("strip").model_dump()["word"] == "tidy"  # type: ignore[union-attr]
    project.recipe("schema: 1\nextends: demo\nstages: {strip: false, report: }\n", "child")
    assert names(project, "child") == ("import", "emit", "compile", "report")
    # Options are not handed on to another stage, its place is.
    project.recipe("schema: 1\nextends: demo\nstages: {strip: {use: other_emit, quality: 1}}\n", "child")
    assert names(project, "child") == ("import", "emit", "strip", "compile")
    project.recipe("schema: 1\nextends: child\nstages: {strip: {quality: 2}}\n", "grandchild")
    assert load(project, "grandchild").recipe.config("strip").model_dump()["quality"] == 2  # type: ignore[union-attr]
    project.recipe("schema: 1\nextends: child\nstages: {strip: {use: strip}}\n", "grandchild")
    assert load(project, "grandchild").recipe.config("strip").model_dump()["word"] == "stripped"  # type: ignore[union-attr]


def test_only_stages_of_the_recipe_can_be_asked_for(project: FakeProject, doit: Doit) -> None:
    code, _, err = doit("run", "demo:strip")
    assert code != 0
    assert "the recipe has no stage 'strip'" in err and "known stages: import, emit, compile, report" in err
    says(project, STRIP)
    assert doit("run", "demo:strip")[0] == 0
    assert project.ran() == ["import", "emit", "strip"]
