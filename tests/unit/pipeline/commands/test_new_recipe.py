"""`doit new recipe`: what it writes runs, and what it cannot make leaves nothing."""

from pathlib import Path

import pytest
import yaml

from pipeline.api import run_recipe
from pipeline.commands.new_recipe import new_recipe
from pipeline.errors import PipelineError
from pipeline.plugins.registry import default_registry
from pipeline.project import Project
from pipeline.recipes.loader import load_recipe, load_recipes
from stages.support.system.installation import INSTALLATION as ROOT

LAYER = "{op: relu, shape: [6]}"


def test_a_recipe_for_a_layer_runs(tmp_path: Path) -> None:
    options = {"layer": LAYER, "target": "host", "set": "stages.compile.optimize=-O1"}
    assert new_recipe("act", Project(tmp_path), **options) == ["recipes/act.yaml"]
    result = run_recipe("act", root=Project(tmp_path), store=tmp_path / "store", build=tmp_path / "build")
    assert result.report is not None and result.report["verify"]["mismatches"] == 0
    loaded = load_recipe("act", root=Project(tmp_path), registry=default_registry())
    assert loaded.recipe.config("compile").optimize == "-O1"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "base", "target"),
    [
        ({"model": "zoo:ds_cnn", "target": "nucleo-f446re"}, "cortex_m_base", "nucleo-f446re"),
        ({"model": "net.tflite"}, "rvp_base", "rv64-rvp"),
        ({"model": "zoo:ds_cnn", "extends": "none", "target": "host"}, None, "host"),
        ({"model": "zoo:ds_cnn", "extends": "kws_rvp"}, "kws_rvp", "rv64-rvp"),
        ({"layer": LAYER, "extends": "ne16_base"}, "ne16_base", "rv32-ne16"),
        ({"layer": LAYER, "extends": "cortex_m_base"}, "cortex_m_base", "cortex-m4"),
        ({"layer": LAYER, "extends": "cortex_m_base", "target": "cortex-m0plus"}, "cortex_m_base", "cortex-m0plus"),
    ],
)
def test_base_and_target(tmp_path: Path, options: dict[str, str], base: str | None, target: str) -> None:
    (tmp_path / "net.tflite").write_bytes((ROOT / "recipes/digits/digits_int8.tflite").read_bytes())
    new_recipe("nets/mine", Project(tmp_path), **options)
    loaded = load_recipe("nets/mine", root=Project(tmp_path), registry=default_registry())
    written = (tmp_path / "recipes/nets/mine.yaml").read_text()
    assert ("extends: " in written) == (base is not None) and f"extends: {base}\n" in f"{written}extends: None\n"
    model = loaded.recipe.model.model_dump()
    expected = {"net.tflite": {"file": "net.tflite"}, "zoo:ds_cnn": {"zoo": "ds_cnn"}, "": {"op": "relu"}}
    assert expected[options.get("model", "")].items() <= model.items()
    assert loaded.target.name == target


def test_a_model_from_elsewhere_is_copied_as_init_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe has no path of this machine and no option that was not asked for."""
    root, data = tmp_path / "project", (ROOT / "recipes/digits/digits_int8.tflite").read_bytes()
    (root / "nets").mkdir(parents=True)
    for place in (tmp_path / "net.tflite", root / "nets/own.tflite"):
        place.write_bytes(data)
    assert new_recipe("a", Project(root), model=str(tmp_path / "net.tflite")) == ["recipes/a.yaml", "models/net.tflite"]
    assert new_recipe("b", Project(root), model="../net.tflite", target="host,rv32-rvp") == ["recipes/b.yaml"]
    assert new_recipe("c", Project(root), model=str(root / "nets/own.tflite"), target="host") == ["recipes/c.yaml"]
    written = {name: yaml.safe_load((root / f"recipes/{name}.yaml").read_text()) for name in "abc"}
    model = {"file": "models/net.tflite"}
    head = {"schema": 1, "name": "a", "extends": "rvp_base", "target": "rv64-rvp", "model": model}
    assert written["a"] == head
    matrix = {"target": ["host", "rv32-rvp"]}
    assert written["b"] == {"schema": 1, "name": "b", "target": "host", "model": model, "matrix": matrix}
    assert written["c"]["model"] == {"file": "nets/own.tflite"}
    assert (root / "models/net.tflite").read_bytes() == data
    members = load_recipes("b", root=Project(root), registry=default_registry())
    assert [member.title for member in members] == ["b:host", "b:rv32-rvp"]
    (tmp_path / "net.tflite").write_bytes(data + b"\0")
    with pytest.raises(PipelineError, match=r"models/net\.tflite already exists and differs from"):
        new_recipe("d", Project(root), model="../net.tflite")
    assert not (root / "recipes/d.yaml").exists()
    monkeypatch.setenv("NETS", str(tmp_path))
    new_recipe("e", Project(root), model="${NETS}/net.tflite")
    assert yaml.safe_load((root / "recipes/e.yaml").read_text())["model"] == {"file": "${NETS}/net.tflite"}


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        (
            "net",
            {"layer": "{op: conv2}"},
            "layer={op: conv2}: model.op: unknown operator 'conv2'; did you mean 'conv2d'",
        ),
        ("net", {"layer": "{op: relu, shape: [6], kernel: [3, 3]}"}, "3]}: model.kernel: relu has no option 'ker"),
        ("net", {"layer": "{op: lstm, shape: [1, 8, 4], out_channels: 6}"}, "6}: operator 0 (UNIDIRECTIONAL_SE"),
        ("net", {}, "either model= or layer= is required"),
        ("net", {"model": "zoo:ds_cnn", "layer": LAYER}, "either model= or layer= is required"),
        ("net", {"model": "zoo:ds_cn"}, "unknown zoo model 'ds_cn'; did you mean 'ds_cnn'"),
        ("net", {"model": "no.tflite"}, "model=no.tflite: no such file"),
        ("net", {"layer": "{shape: [4]}"}, "expected a mapping with op"),
        ("net", {"model": "bootstrap"}, "model=bootstrap"),
        ("net", {"layer": LAYER, "target": "m4"}, "unknown target 'm4'"),
        ("net", {"layer": LAYER, "extends": "nosuch"}, "unknown recipe 'nosuch'"),
        ("../net", {"layer": LAYER}, "'../net' cannot be a name"),
        ("there", {"layer": LAYER}, "recipes/there.yaml already exists\nnothing was written"),
    ],
)
def test_what_it_cannot_make_leaves_nothing(tmp_path: Path, name: str, options: dict[str, str], says: str) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/there.yaml").write_text("mine\n")
    (tmp_path / "bootstrap").write_text("no network")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(PipelineError) as caught:
        new_recipe(name, Project(tmp_path), **options)
    assert says in str(caught.value) and len(str(caught.value).splitlines()) <= 5
    assert "dictionary" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "recipes/there.yaml").read_text() == "mine\n"
