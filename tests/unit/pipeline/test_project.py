"""Projects outside of a clone: lookup from sub-folders, recipes and boards, ownership."""

import os
from pathlib import Path

import pytest

from pipeline.api import run_recipe
from pipeline.commands.dispatch import run
from pipeline.commands.new_project import new_project
from pipeline.errors import PipelineError, RecipeError
from pipeline.keys.planner import Planner
from pipeline.plugins.registry import default_registry
from pipeline.project import Project, current_project, find_project
from pipeline.recipes.loader import load_recipe
from pipeline.recipes.recipe_arguments import matching_recipes
from pipeline.recipes.recipe_files import hiding_notes, is_built_in, recipe_names
from pipeline.recipes.targets import load_targets
from pipeline.runs.workspace import Workspace
from stages.support.system.installation import INSTALLATION as ROOT
from tests.unit.pipeline.conftest import FakeProject

FLASH = "{region: flash, wait_states: 5, line: 16, source: x}"
BOARD = """\
schema: 1
boards:
  mine:
    core: cortex-m4
    title: a board
    memory: {rom: {origin: "0x08000000", length: 1M}, ram: {origin: "0x20000000", length: 192K}, stack: 4K}
"""


@pytest.fixture
def user_project(tmp_path: Path) -> Project:
    """A project of nobody's yet, with the real installation."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    return Project(tmp_path)


def write(project: Project, name: str, text: str) -> None:
    path = project.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def load(project: Project, name: str, **variables: str) -> tuple[str, str, str]:
    """Name, target and the file of the model or its topology."""
    loaded = load_recipe(name, root=project, registry=default_registry(), variables=variables)
    model = loaded.recipe.model.model_dump()
    return loaded.recipe.name, loaded.target.name, str(model.get("file") or model.get("zoo"))


def refused(project: Project, name: str = "kws_rvp") -> str:
    with pytest.raises(RecipeError) as caught:
        load(project, name)
    return str(caught.value)


def test_a_project_is_found_from_below(user_project: Project) -> None:
    below = user_project.root / "recipes" / "deep"
    below.mkdir()
    assert find_project(user_project.root) == find_project(below) == user_project
    (user_project.root / "pipeline.yaml").unlink()
    assert find_project(below) == Project(ROOT)
    (user_project.root / "dodo.py").write_text("import firmline.dodo\n")
    assert find_project(below) == user_project
    (user_project.root / "dodo.py").write_text("def task_other():\n    pass\n")
    assert find_project(below) == Project(ROOT)


def test_a_clone_is_its_own_project(tmp_path: Path) -> None:
    assert find_project(ROOT / "recipes") == Project(ROOT)
    assert Project(ROOT).is_standalone
    # Another clone's code is not this one's.
    for name in ("bootstrap", "pipeline.yaml", "stages/support/system/installation.py", "recipes/x.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert find_project(tmp_path / "recipes") == Project(ROOT)


def test_built_in_recipes_run_and_are_extended_by_name(user_project: Project) -> None:
    write(user_project, "recipes/mine.yaml", "schema: 1\nextends: rvp_base\nmodel: {file: models/net.tflite}\n")
    write(user_project, "recipes/layer.yaml", "schema: 1\nextends: layers/conv1x1_28x28x256_256\n")
    assert load(user_project, "kws_rvp") == ("kws_rvp", "rv64-rvp", "ds_cnn")
    assert load(user_project, "mine", target="rv32-rvp") == ("mine", "rv32-rvp", "models/net.tflite")
    assert load(user_project, "layer")[0] == "layer"
    assert load(user_project, "layers/conv1x1_28x28x256_256")[0] == "layers/conv1x1_28x28x256_256"


def test_a_recipe_with_the_name_of_a_built_in_one_hides_it(user_project: Project) -> None:
    write(user_project, "recipes/mine.yaml", "schema: 1\nextends: mine\n")
    write(user_project, "recipes/kws_rvp.yaml", "schema: 1\nextends: kws_rvp\nmodel: {zoo: resnet_8}\n")
    assert recipe_names(user_project, built_in=False) == ["kws_rvp", "mine"]
    assert recipe_names(user_project)[:3] == ["kws_rvp", "mine", "ad_cortex_m4"]
    assert recipe_names(user_project).count("kws_rvp") == 1
    assert [is_built_in(name, user_project) for name in ("kws_rvp", "mine", "ad_rvp", "zzz")] == [
        False,
        False,
        True,
        False,
    ]
    # A glob is about the project's own.
    registry = default_registry()
    assert matching_recipes(["kws*", "*"], user_project, registry) == ["kws_rvp", "mine"]
    assert matching_recipes(["ad_rvp", "layers/*"], user_project, registry) == ["ad_rvp"]
    # A recipe can extend the built-in recipe that it hides, with a note.
    assert load(user_project, "kws_rvp") == ("kws_rvp", "rv64-rvp", "resnet_8")
    names = [
        document.name for document in load_recipe("kws_rvp", root=user_project, registry=registry).sources.documents
    ]
    assert names == ["recipes/kws_rvp.yaml", "<firmline>/recipes/kws_rvp.yaml", "<firmline>/recipes/rvp_base.yaml"]
    assert hiding_notes(names, user_project) == ["recipes/kws_rvp.yaml hides the built-in recipe kws_rvp"]
    assert hiding_notes(names, Project(ROOT)) == []
    assert "extends forms a cycle: recipes/mine.yaml -> recipes/mine.yaml" in refused(user_project, "mine")


def test_mistakes_are_shown_in_the_file_that_has_them(user_project: Project) -> None:
    write(user_project, "recipes/mine.yaml", "schema: 1\nextends: kws_rvp\ntarget: nope\n")
    assert refused(user_project, "mine").startswith("recipes/mine.yaml:3:9: unknown target 'nope'")
    write(user_project, "recipes/mine.yaml", "schema: 1\nextends: kws_rpv\n")
    assert refused(user_project, "mine").startswith(
        "recipes/mine.yaml:2:10: unknown recipe 'kws_rpv'; did you mean 'kws_rvp'?\n"
    )
    assert refused(user_project, "rvp_base").startswith(
        "<firmline>/recipes/rvp_base.yaml:6:11: recipe 'rvp_base' is abstract"
    )
    assert refused(user_project, "kws_rpv").startswith(
        "unknown recipe 'kws_rpv'; did you mean 'kws_rvp'?\nknown recipes: mine,"
    )


def test_boards_and_cores_add_to_the_built_in_ones(user_project: Project) -> None:
    write(user_project, "pipeline.yaml", BOARD)
    targets = load_targets(user_project)
    built_in = load_targets(ROOT)
    assert list(targets) == [*built_in, "mine"]
    assert (targets["mine"].core, targets["mine"].memory.region_of("data").length) == ("cortex-m4", 192 << 10)
    assert load(user_project, "kws_cortex_m4", target="mine")[1] == "mine"
    (user_project.root / "pipeline.yaml").unlink()
    assert load_targets(user_project) == built_in


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("core: cortex-m4", "core: cortex-m5", "pipeline.yaml:4:11: unknown core 'cortex-m5'; did you"),
        ("schema: 1\n", "", "pipeline.yaml:1:1: missing key 'schema'"),
        ("mine:", "cortex-m4:", "pipeline.yaml:3:3: board 'cortex-m4' has the name of a built-in core, <"),
        ("core: cortex-m4", "core: host", "pipeline.yaml:4:11: core 'host' runs under an operating system and cannot"),
        ("    core: cortex-m4\n", "", "pipeline.yaml:4:5: missing key 'core' in boards.mine"),
        ("title", "titel", "pipeline.yaml:5:5: unknown key 'titel'; did you mean 'title'?"),
        ("    title", f"    flash: {FLASH}\n    title", "pipeline.yaml:5:21: boards.mine.flash.region: there"),
        ("  mine:", "  nrf52840-dk:", "pipeline.yaml:3:3: board 'nrf52840-dk' has the name of a built-in board, <"),
    ],
)  # fmt: skip
def test_mistakes_in_pipeline_yaml(user_project: Project, old: str, new: str, message: str) -> None:
    write(user_project, "pipeline.yaml", BOARD.replace(old, new, 1))
    assert refused(user_project).startswith(message)


def test_a_run_leaves_everything_in_the_project(project: FakeProject) -> None:
    """With a small installation: relative paths, build/ and the store belong to the project."""
    apart = Project(project.root / "apart", project.root)
    write(apart, "recipes/mine.yaml", "schema: 1\nextends: demo\nmodel: {file: net.txt}\n")
    write(apart, "net.txt", "own weights\n")
    before = sorted(project.root.rglob("*"))
    result = run_recipe("mine", root=apart, registry=project.registry)
    assert result.folder == apart.root / "build/mine/rv64-rvp"
    assert result.artifacts["import"].is_relative_to(apart.root / ".firmline/store")
    assert project.ran()[0] == "import"
    written = {path for path in project.root.rglob("*") if not path.is_relative_to(apart.root)} - set(before)
    assert {path.name for path in written} <= {"asked.txt"}


def test_a_built_in_recipe_finds_its_files(user_project: Project) -> None:
    """Relative paths start at the project, then at the installation."""
    with Workspace(root=user_project, store=user_project.root / "store") as workspace:
        planned = workspace.plan("digits_rvp", until="import")["import"]
        assert list(planned.files.values()) == [ROOT / "recipes/digits/digits_int8.tflite"]
        write(user_project, "recipes/digits/digits_int8.tflite", "mine")
        loaded = load_recipe("digits_rvp", root=user_project, registry=default_registry())
        planner = Planner(user_project, workspace.store.digests, workspace.planner.tools, workspace.planner.imports)
        planned = planner.plan(loaded, "import")["import"]
        assert list(planned.files.values()) == [user_project.root / "recipes/digits/digits_int8.tflite"]


def test_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert current_project() == Project(ROOT)
    monkeypatch.setattr("pipeline.project.is_clone", lambda folder=ROOT: False)
    with pytest.raises(PipelineError, match=r"^the current folder was deleted\n"):
        current_project()


SAFE = "FIRMLINE_SAFE_DIRECTORY"


@pytest.fixture
def foreign(user_project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of another user, with a plug-in that writes a file when it runs."""
    plugin = user_project.root / "plugins/stages/evil.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(f"open({str(user_project.root / 'ran')!r}, 'w')\n")
    (user_project.root / "sub").mkdir()
    uid = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    for name in (SAFE, "SUDO_UID"):
        monkeypatch.delenv(name, raising=False)
    return user_project


@pytest.mark.parametrize("words", [["list"], ["run", "q"], ["completion", "bash"]])
def test_the_code_of_another_users_project_does_not_run(
    foreign: Project, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(foreign.root / "sub")
    assert run(words) == 1
    message = capsys.readouterr().err
    assert "belongs to" in message and f"{SAFE}={foreign.root}" in message and len(message.splitlines()) <= 5
    assert not (foreign.root / "ran").exists()
    with pytest.raises(PipelineError, match="belongs to"):
        new_project(foreign.root)
    assert not (foreign.root / "ran").exists()


def test_a_project_that_is_named_runs(foreign: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(foreign.root / "sub")
    root, others = str(foreign.root), f"relative:/nowhere:{foreign.root.parent}:{foreign.root}x/*:{foreign.root}/sub"
    for value in (root, f"{others}:{root}/", "*", "/*", f"{foreign.root.parent}/*", f"{root}/../{foreign.root.name}"):
        monkeypatch.setenv(SAFE, value)
        assert current_project() == foreign
    for value in ("", others, ".", "**", "~"):
        monkeypatch.setenv(SAFE, value)
        with pytest.raises(PipelineError, match="belongs to"):
            current_project()


def test_root_by_sudo(foreign: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root by sudo owns the user's projects; the variable has no effect for other users."""
    monkeypatch.chdir(foreign.root)
    owner, uid = foreign.root.stat().st_uid, os.geteuid()
    monkeypatch.setenv("SUDO_UID", str(owner))
    if uid != 0:
        with pytest.raises(PipelineError, match="belongs to"):
            current_project()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert current_project() == foreign


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["plugins", "pipeline.yaml", "recipes", ".firmline", "dodo.py"])
def test_a_folder_that_all_may_write(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in /tmp: root owns the folder, but not its content."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    if not (tmp_path / name).exists():
        (tmp_path / name).mkdir()
    os.chown(tmp_path / name, 4321, -1)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PipelineError, match=rf"{name} belongs to uid 4321"):
        current_project()
