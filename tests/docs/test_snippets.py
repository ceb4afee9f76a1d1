"""YAML on the pages is taken by the loader as it stands: recipes and parts of them, and what pipeline.yaml may have.

Those of the pages that tests follow from file to file are run there (tests/firmware), workflows in test_ci_page.py.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.plugins.registry import registry_of
from pipeline.project import Project
from pipeline.recipes.loader import load_recipes
from pipeline.recipes.targets import load_targets, remote_store
from stages.support.system.installation import INSTALLATION as ROOT

BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ELSEWHERE = ("accelerator", "ci", "distributed", "add_")
_OF_RECIPES = {"stages", "memory", "matrix", "extends", "model"}
_OF_PROJECTS = {"boards", "cores", "timings", "store", "accelerator"}
# What a part of a recipe is a part of; its rules name regions of a board that the page has before.
USUAL = {"schema": 1, "target": "rv64-rvp", "model": {"zoo": "ds_cnn"}}
# What the stages of the pages say of themselves.
STAGE = """\
from stages.base import Stage, StageConfig

class Config(StageConfig):
    tiles: int = 1

class Own(Stage[Config]):
    kind = "{kind}"
    config = Config
    provides = "{provides}"
    consumes = ("{consumes}",)

    def run(self, job):
        pass

STAGE = Own()
"""


def snippets(keys: set[str]) -> Iterator[Any]:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        found = [] if page.stem.startswith(_ELSEWHERE) else BLOCK.findall(page.read_text(encoding="utf-8"))
        for number, text in enumerate(found):
            if keys & yaml.safe_load(text).keys():
                yield pytest.param(text, id=f"{page.stem}-{number}")


def recipe_texts() -> list[str]:
    """Recipes and parts of recipes of the pages."""
    return [str(part.values[0]) for part in snippets(_OF_RECIPES)]


def loaded(text: str, folder: Path) -> None:
    """A recipe of a project that has the board and the stages of the pages."""
    (folder / "recipes").mkdir()
    (folder / "pipeline.yaml").write_text(BOARD)
    for kind, provides, consumes in (("prune", "quantize", "quantize"), ("my_emit", "emit", "tensorize")):
        place = folder / f"plugins/stages/{kind}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(STAGE.format(kind=kind, provides=provides, consumes=consumes))
    registry = registry_of(Project(folder))
    data = {**USUAL, **yaml.safe_load(text)}
    if "rules" in data.get("memory", {}):
        data["target"] = "my-board"
    if "name" in data:
        (folder / f"recipes/{data['name']}.yaml").write_text(text)
        load_recipes(data["name"], root=Project(folder), registry=registry)
    else:
        load_recipes(data, root=Project(folder), registry=registry)


(BOARD,) = (
    f"schema: 1\n{text}"
    for text in BLOCK.findall((ROOT / "docs/reference/targets.md").read_text())
    if "axi_sram:" in text
)


@pytest.mark.parametrize("text", [*snippets(_OF_RECIPES)])
def test_a_recipe_is_taken(text: str, tmp_path: Path) -> None:
    loaded(text, tmp_path)


@pytest.mark.parametrize("text", [*snippets(_OF_PROJECTS)])
def test_a_project_is_taken(text: str, tmp_path: Path) -> None:
    data = yaml.safe_load(text)
    if "accelerator" in data:
        data = {"boards": {"my-board": {"like": "rv32-ne16", **data}}}
    for board in data.get("boards", {}).values():
        if not board.keys() & {"core", "like"}:
            board["like"] = "nucleo-f446re"
    (tmp_path / "devices/doubler").mkdir(parents=True)
    (tmp_path / "devices/doubler/doubler.cc").touch()
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump({"schema": 1, **data}))
    targets = load_targets(Project(tmp_path))
    assert {*data.get("boards", {}), *data.get("cores", {})} <= targets.keys()
    assert (remote_store(Project(tmp_path)) is not None) == ("store" in data)
