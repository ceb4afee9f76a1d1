"""Names from users' files: hostile ones are refused wherever a schema or a command reads one."""

import json
from pathlib import Path
from typing import Any

import pytest
from doit import doit_cmd

from pipeline.commands.matrix_json import MatrixJson
from pipeline.commands.new_recipe import new_recipe
from pipeline.errors import PipelineError, RecipeError
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.registry import default_registry
from pipeline.project import Project
from pipeline.recipes.loader import load_recipes
from pipeline.recipes.targets import load_targets
from stages.support.options.names import IDENTIFIER_PATTERN, NAME_PATTERN, RECIPE_PATTERN, as_name, invalid_name
from stages.support.system.installation import INSTALLATION

HOSTILE = [
    *("../../../victim", "/etc/passwd", "..", ".", "", ".hidden", "-rf", "a/../b", "a//b", "a/"),
    *("x;touch PWNED;$(id)", "a b", "a\n", "a\nb", "`id`", "a'b", 'a"b', "a\\b", "a*/", "<script>", "a|b", "a]]>b"),
    *("${HOME}", "a\0b", "na\u00efve", "a\u202eb", "\u0430", "x" * 221),
]
REGIONS = {"rom": {"origin": 0, "length": "4M"}, "ram": {"origin": "0x20000000", "length": "64K"}, "stack": "4K"}
BOARD = {"core": "cortex-m4", "title": "t", "memory": REGIONS}
RECIPE = {"schema": 1, "target": "host", "model": {"op": "relu", "shape": [4]}}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_pattern_takes_it(name: str) -> None:
    for pattern in (NAME_PATTERN, RECIPE_PATTERN, IDENTIFIER_PATTERN):
        assert "cannot be a name; allowed are" in invalid_name(name, pattern)
    assert not as_name(name) or not invalid_name(as_name(name))


def catalogues(name: str) -> dict[str, dict[str, Any]]:
    """A pipeline.yaml for each place that has the name."""
    core = {"like": "cortex-m4"}
    return {
        "board": {"boards": {name: BOARD}},
        "board that is like another": {"boards": {name: {"like": "nucleo-f446re"}}},
        "core": {"cores": {name: core}},
        "timing model": {"timings": {name: {"like": "cortex-m4"}}},
        "region": {"boards": {"mine": {**BOARD, "memory": {**REGIONS, name: {"origin": 1 << 30, "length": "1K"}}}}},
        "accelerator": {"boards": {"mine": {**BOARD, "accelerator": {"kind": name, "memory": "ram"}}}},
        "kernels": {"cores": {"mine": {**core, "kernels": [name]}}},
        "family": {"cores": {"mine": {**core, "family": name}}},
        "isa": {"cores": {"mine": {**core, "isa": name}}},
        "extension": {"cores": {"mine": {**core, "extensions": {name: "1.0"}}}},
        "compiler's package": {"cores": {"mine": {**core, "compiler": {"packages": [name]}}}},
        "simulator": {"cores": {"mine": {**core, "simulator": {"kind": name}}}},
        "simulator's package": {"cores": {"mine": {**core, "simulator": {"packages": [name]}}}},
        "device": {"cores": {"mine": {**core, "simulator": {"devices": [{"name": name}]}}}},
    }


@pytest.mark.parametrize("place", catalogues(""))
def test_pipeline_yaml(tmp_path: Path, place: str) -> None:
    for name in ("../../../victim", "x;touch PWNED;$(id)", "a\n", "na\u00efve"):
        (tmp_path / "pipeline.yaml").write_text(json.dumps({"schema": 1, **catalogues(name)[place]}))
        with pytest.raises(RecipeError) as raised:
            load_targets(Project(tmp_path))
        first, *_ = str(raised.value).splitlines()
        assert first.startswith("pipeline.yaml:1:") and f"{name!r} cannot be a name; allowed are" in first


@pytest.mark.parametrize(
    "entry",
    [
        lambda name: {"name": name},
        lambda name: {"stages": {"emit": {"prefix": name}}},
        lambda name: {"matrix": {"target": {name: "host"}}},
    ],
)
def test_recipe(entry: Any) -> None:
    for name in ("../../../victim", "x;touch PWNED;$(id)", "a\n", "na\u00efve"):
        with pytest.raises(RecipeError, match="cannot be a name; allowed are"):
            load_recipes({**RECIPE, **entry(name)}, root=INSTALLATION, registry=default_registry())


def test_a_name_made_of_values_is_one() -> None:
    """What a matrix calls its combinations, also of values that are no names, or of many."""
    recipe = {**RECIPE, "matrix": {"model": ["../$(id)/a b.tflite", f"{'x' * 150}.tflite", f"{'x' * 151}.tflite"]}}
    variants = [one.variant for one in load_recipes(recipe, root=INSTALLATION, registry=default_registry())]
    assert len(set(variants)) == 3 and not any(map(invalid_name, variants))


@pytest.mark.parametrize("file", ["kernels/a;b/__init__.py", "targets/a b.yaml", "stages/$(id).py", "exports/a'b.py"])
def test_plug_ins(tmp_path: Path, file: str) -> None:
    path = tmp_path / "plugins" / file
    path.parent.mkdir(parents=True)
    path.write_text("")
    with pytest.raises(PipelineError, match=r"plug-in plugins/.* cannot be a name; allowed are"):
        plugins_of(Project(tmp_path))


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PipelineError, match="cannot be a name"):
        new_recipe("../../victim", Project(tmp_path), model="zoo:ds_cnn")
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    for folder in ("recipes", "a;touch PWNED"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.yaml").write_text(json.dumps(RECIPE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doit_cmd, "_CMDLINE_VARS", {})
    for name, code in (("a;touch PWNED/net.yaml", 1), ("recipes/net.yaml", 0)):
        doit_cmd.set_var("recipe", name)
        assert MatrixJson().execute({}, []) == code
    told = capsys.readouterr()
    assert told.out == '[{"recipe": "recipes/net.yaml", "target": "host"}]\n'
    assert "the name is not safe in a workflow's shell" in told.err
