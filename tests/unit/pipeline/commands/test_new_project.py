"""`doit init`: what it writes runs, and what it cannot make leaves nothing."""

import ast
from pathlib import Path

import pytest
import yaml

from pipeline.commands.new_project import new_project
from pipeline.errors import PipelineError
from pipeline.plugins.registry import default_registry
from pipeline.project import Project, find_project
from pipeline.recipes.loader import load_recipe, load_recipes
from pipeline.recipes.recipe_files import recipe_names
from pipeline.recipes.targets import load_targets
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.command_lines import run_all

WRITTEN = ("pipeline.yaml", "recipes/net.yaml", "dodo.py", ".gitignore", ".github/workflows/firmware.yml")
MODEL = ROOT / "recipes/digits/digits_int8.tflite"


def refused(folder: Path, **options: str) -> str:
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(PipelineError) as caught:
        new_project(folder, **options)
    assert sorted(folder.parent.rglob("*")) == before
    return str(caught.value)


def test_the_recipe_loads_on_every_target(tmp_path: Path) -> None:
    for target in load_targets(ROOT):
        folder = tmp_path / target / "net"
        assert {*WRITTEN, "recipe.schema.json"} == set(new_project(folder, target=target))
        project = find_project(folder / "recipes")
        assert project == Project(folder)
        assert recipe_names(project, built_in=False) == ["net"]
        loaded = load_recipe("net", root=project, registry=default_registry())
        assert (loaded.title, loaded.target.name) == ("net", target)
        assert load_targets(project) == load_targets(ROOT)
    # What suits the core alone may keep layers from its engine.
    for target, base in (("rv32-ne16", "ne16_base"), ("rv32-outer16", "outer16_base")):
        assert f"extends: {base}\n" in (tmp_path / target / "net/recipes/net.yaml").read_text()


def test_several_targets_become_the_matrix_of_the_recipe(tmp_path: Path) -> None:
    new_project(tmp_path / "net", target="cortex-m4, host,cortex-m4")
    members = load_recipes("net", root=Project(tmp_path / "net"), registry=default_registry())
    assert [member.target.name for member in members] == ["cortex-m4", "host"]
    assert refused(tmp_path / "other", target="host,hots").startswith("unknown target 'hots'")


@pytest.mark.parametrize("target", ["cortex-m4", "host"])
def test_what_is_commented_out_is_right_too(tmp_path: Path, target: str) -> None:
    """The lines that a user may take the comment sign from."""
    new_project(tmp_path / "net", target=target)
    project = Project(tmp_path / "net")
    for name in ("pipeline.yaml", "recipes/net.yaml"):
        path = project.root / name
        lines = path.read_text().splitlines()
        lines = [line[2:] if line[2:].split(":")[0].strip() in OFFERED else line for line in lines]
        path.write_text("\n".join(lines) + "\n")
    data = yaml.safe_load((project.root / "recipes/net.yaml").read_text())
    assert {"memory", "matrix"} < set(data)
    members = load_recipes("net", root=project, registry=default_registry())
    assert [member.target.name for member in members] == [target, "host" if target != "host" else "rv32-scalar"]
    loaded = load_recipe("net:my-board", root=project, registry=default_registry(), variables={"target": "my-board"})
    assert loaded.target.name == "my-board"


OFFERED = ("boards", "my-board", "core", "title", "clock", "memory", "matrix")


def test_the_workflow_and_dodo(tmp_path: Path) -> None:
    new_project(tmp_path / "net")
    workflow = yaml.safe_load((tmp_path / "net/.github/workflows/firmware.yml").read_text())
    install = next(step["run"] for step in workflow["jobs"]["recipe"]["steps"] if "apt-get" in step.get("run", ""))
    needed = {name for target in load_targets(ROOT).values() for name in target.compiler.packages}
    assert needed | {"qemu-user", "g++"} <= set(install.split())
    assert "${{ matrix.recipe }}" in workflow["jobs"]["recipe"]["name"]
    assert "@" not in (tmp_path / "net/recipes/net.yaml").read_text()
    (line,) = (tmp_path / "net/dodo.py").read_text().splitlines()
    assert isinstance(ast.parse(line).body[0], ast.Import)


def test_a_model_is_copied_unless_it_is_there_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(MODEL.parent)
    assert "models/digits_int8.tflite" in new_project(tmp_path / "net", model=MODEL.name, target="cortex-m4")
    assert (tmp_path / "net/models/digits_int8.tflite").read_bytes() == MODEL.read_bytes()
    other = tmp_path / "other"
    (other / "nets").mkdir(parents=True)
    (other / "nets/a: b#.tflite").write_bytes(MODEL.read_bytes())
    assert not any("tflite" in path for path in new_project(other, model=str(other / "nets/a: b#.tflite")))
    loaded = load_recipe("other", root=Project(other), registry=default_registry())
    assert loaded.recipe.model.model_dump()["file"] == "nets/a: b#.tflite"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "cortex-m5"}, "unknown target 'cortex-m5'; did you mean 'cortex-m55'?\nknown targets: rv64-rvp,"),
        ({"model": "/"}, "model=/: is a folder, not a file\nit has no .tflite or .onnx file"),
        ({"model": "no.tflite"}, "model=no.tflite: cannot be read: No such file or directory"),
        ({"model": "zoo:ds_cn"}, "unknown zoo model 'ds_cn'; did you mean "),
        ({"model": str(ROOT / "bootstrap")}, "model="),
        ({"model": "https://x/y"}, "model=https://x/y: a download needs its sha256\n"),
    ],
)
def test_what_cannot_be_made(tmp_path: Path, options: dict[str, str], message: str) -> None:
    assert refused(tmp_path / "net", **options).startswith(message)


def test_nothing_is_overwritten_and_nothing_is_left(tmp_path: Path) -> None:
    net = tmp_path / "net"
    (net / "recipes").mkdir(parents=True)
    (net / "dodo.py").write_text("mine")
    assert refused(net) == f"{net}/dodo.py already exists\nnothing was written"
    (net / "dodo.py").unlink()
    # In the way of a folder, also for root; what was written before goes again.
    (net / ".github").write_text("")
    assert refused(net) == f"{net} cannot become a project: Not a directory\nnothing was written"
    with pytest.raises(PipelineError, match="is a clone of Firmline, which is already a project"):
        new_project(ROOT)
    (net / ".github").unlink()
    assert new_project(net)


def test_the_command_line(tmp_path: Path) -> None:
    errors = {
        "init": "ERROR: doit init needs one folder, such as `doit init my_project`\n",
        "init a b": "ERROR: doit init needs one folder, such as `doit init my_project`\n",
        "init my_net": "ERROR: my_net/pipeline.yaml already exists\nnothing was written\n",
        "init a recipe=b": "ERROR: doit init takes no 'recipe='",
    }
    first = ["init", "my_net", f"model={MODEL}", "target=host"]
    done, *wrong = run_all([first, *(line.split() for line in errors)], tmp_path, at=tmp_path)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "next: cd my_net && doit run my_net"
    for ended, message in zip(wrong, errors.values(), strict=True):
        assert ended.code and ended.stderr.startswith(message)
    assert not (tmp_path / "a").exists()

    project = tmp_path / "my_net"
    lines = ("explain my_net", "explain recipes/my_net.yaml", "matrix-json", "schema")
    by_name, by_path, jobs, schema = run_all([line.split() for line in lines], tmp_path, at=project)
    assert by_name.stdout.splitlines()[0].startswith("my_net on host")
    assert (by_path.code, by_path.stdout) == (0, by_name.stdout), "what a path names is what a name does"
    assert jobs.stdout == '[{"recipe": "my_net", "target": "host"}]\n' and schema.stdout == "recipe.schema.json\n"

    # A built-in name in a project is noted; here from a folder below.
    recipe = project / "recipes/kws_rvp.yaml"
    recipe.write_text("schema: 1\nextends: kws_rvp\ntarget: host\n")
    everything, noted = run_all([["list"], ["list", "kws_rvp"]], tmp_path, at=project / "recipes")
    rows = [line.split() for line in everything.stdout.splitlines()]
    assert ["my_net", "digits_int8.tflite", "host"] in [row[:3] for row in rows]
    assert any(row[0] == "kws_cortex_m4" and "built-in." in row for row in rows)
    assert (noted.code, noted.stderr) == (0, "note: recipes/kws_rvp.yaml hides the built-in recipe kws_rvp\n")
