"""Plug-ins of projects and distributions: discovery without import, keys, error messages."""

import sys
from pathlib import Path

import pytest

from pipeline.api import run_recipe
from pipeline.errors import PipelineError, RecipeError
from pipeline.keys.planner import Plan
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.registry import registry_of
from pipeline.project import Project
from pipeline.recipes.loader import load_recipe
from pipeline.recipes.targets import load_targets
from pipeline.runs.workspace import Workspace
from stages.backends.kernels import registry as kernels
from stages.backends.simulators.program import run_program
from stages.base import StageError
from stages.ir.models import zoo
from stages.ir.models.resolve import resolve
from tests.support.plugged import again, write

STAGE = """\
from stages.base import Stage, StageConfig

from . import words


class Say(Stage[StageConfig]):
    kind = "say"
    config = StageConfig
    consumes = ("import",)

    def run(self, job):
        (job.out / "said").write_text(words.WORDS)


STAGE = Say()
"""
KERNELS = """\
from stages.backends.kernels.folder import KernelFolder
from stages.backends.generic.kernels.generic.elementwise import Dequantize as Usual


class Dequantize(Usual):
    name = "acme.dequantize"
    sources = ("../generic/dequantize.c",)
    headers = ("../generic/dequantize.h",)


FOLDER = KernelFolder(__file__, kernels=(Dequantize,))
"""
TARGETS = """\
schema: 1
cores:
  acme: {like: rv64-scalar, kernels: [acme, generic]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write(tmp_path, "pipeline.yaml", "schema: 1\n")
    write(tmp_path, "plugins/stages/_ignored.py", "broken(")
    return Project(tmp_path)


def plan(project: Project, **more: object) -> Plan:
    recipe = {"schema": 1, "name": "x", "target": "acme", "model": {"op": "dequantize", "shape": [8]}, **more}
    with Workspace(root=again(project)) as workspace:
        loaded = load_recipe(recipe, root=project, registry=workspace.registry)
        return workspace.planner.plan(loaded)


def changed(before: Plan, after: Plan) -> set[str]:
    return {action.kind for action in after if action.identity != before[action.kind].identity}


def test_files_of_plug_ins_are_in_the_keys_of_the_stages_that_use_them(project: Project) -> None:
    write(project.root, "plugins/targets/acme.yaml", TARGETS)
    write(project.root, "plugins/kernels/acme/__init__.py", KERNELS)
    write(project.root, "plugins/stages/say/__init__.py", STAGE)
    write(project.root, "plugins/stages/say/words.py", "WORDS = 'yes'\n")
    stages = {"say": {"after": "import"}}
    before = plan(project, stages=stages)
    assert before["say"].ingredients["plug-in"].keys() == {"say/__init__.py", "say/words.py"}
    assert before["emit"].ingredients["plug-in"].keys() == {"kernels/acme/__init__.py"}
    write(project.root, "plugins/stages/say/words.py", "WORDS = 'no'\n")
    assert changed(before, second := plan(project, stages=stages)) == {"say"}
    write(project.root, "plugins/kernels/acme/__init__.py", KERNELS + "# changed\n")
    following = {"count", "tensorize", "emit", "compile", "simulate", "verify", "report"}
    assert changed(second, plan(project, stages=stages)) == following
    moved = Project(project.root.rename(project.root.with_name("moved")))
    assert changed(plan(moved, stages=stages), plan(moved, stages=stages)) == set()
    assert plan(moved, stages=stages)["say"].identity == second["say"].identity


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        ("stages/say.py", "x = (\n", "plug-in plugins/stages/say.py:1: SyntaxError: '(' was never closed"),
        ("stages/say.py", "STAGE = 1\n", "plug-in plugins/stages/say.py: STAGE is not a stage"),
        ("stages/say.py", STAGE.replace("from . import words", "").replace('"say"', '"emit"'),
         "the kind 'emit' is used by Firmline"),
        ("kernels/acme/__init__.py", KERNELS.replace('name = "acme.deq', 'name = "other.deq'),
         "kernel folder acme: its kernel is called other.dequantize"),
        ("kernels/acme/__init__.py", KERNELS.replace("    sources", '    ops = frozenset({"dequantise"})\n    sources'),
         "acme.dequantize lists the unknown operator 'dequantise'; did you mean 'dequantize'"),
        ("targets/acme.yaml", TARGETS.replace("[acme, generic]", "[acne, generic]"),
         "plugins/targets/acme.yaml:3:39: unknown kernel folder 'acne'; did you mean 'acme'?"),
        ("targets/acme.yaml", TARGETS.replace("kernels:", "simulator: {kind: spiky}, kernels:"),
         "plugins/targets/acme.yaml:3:47: unknown simulator 'spiky'; did you mean"),
        ("targets/acme.yaml", TARGETS.replace("  acme:", "  rv64-rvp:"),
         "plugins/targets/acme.yaml:3:3: core 'rv64-rvp' has the name of a built-in core, <"),
    ],
)  # fmt: skip
def test_a_broken_plug_in_is_named_with_its_line(project: Project, place: str, text: str, expected: str) -> None:
    write(project.root, "plugins/targets/acme.yaml", TARGETS)
    write(project.root, "plugins/kernels/acme/__init__.py", KERNELS)
    write(project.root, f"plugins/{place}", text)
    with pytest.raises((PipelineError, StageError)) as caught:
        registry_of(again(project))
        kernels.kernels_of(load_targets(project)["acme"])
    assert expected in str(caught.value)


def test_a_simulator_runs_what_its_target_names_it_for(project: Project) -> None:
    text = """
        from stages.base import Tool
        from stages.backends.simulators.process import Finished

        class Echo:
            def tools(self, target):
                return (Tool("echo", command="echo"),)

            def run(self, elf, target, folder, *, timeout, most_instructions, watch):
                return Finished(0, f"{target.name} runs {elf.name}")

        SIMULATOR = Echo()
    """
    write(project.root, "plugins/simulators/echo.py", text.replace("\n        ", "\n"))
    write(
        project.root,
        "plugins/targets/acme.yaml",
        TARGETS.replace("kernels: [acme, generic]", "simulator: {kind: echo}"),
    )
    target = load_targets(again(project))["acme"]
    assert run_program(project.root / "a.elf", target, project.root).output == "acme runs a.elf"
    assert plan(project)["simulate"].tools.keys() == {"echo"}
    assert plan(project)["simulate"].ingredients["plug-in"].keys() == {"simulators/echo.py"}


MODEL = """\
def build(dtype, seed):
    from stages.ir.models.zoo.tiny import autoencoder

    return autoencoder(dtype, seed)
"""


def test_a_model_of_a_plug_in_is_one_of_the_zoo(project: Project) -> None:
    write(project.root, "plugins/targets/acme.yaml", TARGETS.replace("acme, ", ""))
    write(project.root, "plugins/models/mine.py", MODEL)
    model = {"zoo": "mine", "seed": 7}
    plan_with_plugins = plan(project, model=model)
    assert resolve(plan_with_plugins["import"].model) == zoo.build("autoencoder", "int8", 7)
    assert plan_with_plugins["import"].ingredients["plug-in"].keys() == {"mine.py"}
    assert plan_with_plugins["import"].ingredients["model"] == {"zoo": "mine", "dtype": "int8", "seed": 7}
    assert plan(project, model={"zoo": "ds_cnn"})["import"].ingredients.get("plug-in") is None
    write(project.root, "plugins/models/mine.py", MODEL + "# changed\n")
    assert "import" in changed(plan_with_plugins, plan(project, model=model))
    with pytest.raises(RecipeError, match="unknown zoo model 'mien'"):
        plan(project, model={"zoo": "mien"})
    write(project.root, "plugins/models/ds_cnn.py", MODEL)
    with pytest.raises(PipelineError, match=r"plugins/models/ds_cnn\.py has the name of the built-in model"):
        plan(project, model=model)


def distribution(folder: Path, name: str, entries: str) -> None:
    write(folder, f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    write(folder, f"{name}-1.0.dist-info/entry_points.txt", entries)


def test_distributions_add_the_same_by_entry_points(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = project.root / "packages"
    write(packages, "acme_parts/__init__.py", "")
    write(packages, "acme_parts/acme/__init__.py", KERNELS)
    write(packages, "acme_parts/cores/acme.yaml", TARGETS)
    write(packages, "acme_parts/say.py", STAGE)
    write(packages, "acme_parts/words.py", "WORDS = 'yes'\n")
    entries = "[firmline.{}]\n{} = acme_parts.{}\n"
    lines = [("kernels", "acme", "acme"), ("targets", "acme", "cores"), ("stages", "say", "say")]
    distribution(packages, "acme_parts", "".join(entries.format(*line) for line in lines))
    monkeypatch.syspath_prepend(str(packages))
    plan_with_plugins = plan(project, stages={"say": {"after": "import"}})
    assert "acme_parts/words.py" in plan_with_plugins["say"].ingredients["plug-in"]
    assert "kernels/acme_parts/acme/__init__.py" in plan_with_plugins["tensorize"].ingredients["plug-in"]
    assert "acme.dequantize" in kernels.kernels_of(load_targets(project)["acme"])
    write(project.root, "plugins/stages/say.py", STAGE)
    with pytest.raises(PipelineError, match=r"plugins/stages/say\.py, say = acme_parts\.say of acme_parts"):
        plugins_of(again(project))
    (project.root / "plugins/stages/say.py").unlink()
    write(packages, "acme_parts/say.py", "raise OSError('no')\n")
    for module in ("acme_parts.say", "acme_parts.words"):
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(PipelineError, match=r"plug-in say = acme_parts\.say of acme_parts, say\.py:1: OSError: no"):
        registry_of(again(project))


@pytest.mark.parametrize(
    ("provides", "line", "expected"),
    [
        ("", "1 / 0", "say: plug-in plugins/stages/say.py:11: ZeroDivisionError: division by zero"),
        (
            "quantize",
            "(job.out / 'other').write_text('')",
            "count: stage 'say' did not write graph.json\na stage that provides 'quantize' writes all files of",
        ),
    ],
)
def test_a_run_names_the_plug_in_that_fails(project: Project, provides: str, line: str, expected: str) -> None:
    consumed = provides or "import"
    head = f'consumes = ("{consumed}",)\n    provides = "{provides or "say"}"'
    text = STAGE.replace("from . import words\n\n", "").replace('consumes = ("import",)', head)
    write(project.root, "plugins/stages/say.py", text.replace('(job.out / "said").write_text(words.WORDS)', line))
    recipe = {
        "schema": 1,
        "name": "x",
        "target": "rv32-scalar",
        "model": {"op": "dequantize", "shape": [8]},
        "stages": {"say": {"after": consumed}},
    }
    with pytest.raises(PipelineError) as caught:
        run_recipe(recipe, root=again(project), store=project.root / "store", build=project.root / "build")
    assert str(caught.value).startswith(expected)
