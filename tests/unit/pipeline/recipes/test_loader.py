"""Errors in recipes show file, line, column and the line."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.errors import RecipeError
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import LoadedRecipe, load_recipe
from stages.support.options.names import IDENTIFIER_PATTERN, invalid_name
from tests.support.emitted import ROOT
from tests.unit.pipeline.conftest import FakeProject


def load(project: FakeProject, name: str | Mapping[str, object] = "demo", **variables: str) -> LoadedRecipe:
    return load_recipe(name, root=project.root, registry=project.registry, variables=variables)


def refused(project: FakeProject, name: str | Mapping[str, object] = "demo", **variables: str) -> str:
    """Return the message, of one to five lines."""
    with pytest.raises(RecipeError) as caught:
        load(project, name, **variables)
    message = str(caught.value)
    assert 1 <= len(message.splitlines()) <= 5
    return message


@pytest.mark.parametrize(
    ("old", "new", "guess"),
    [
        ("stages:", "compile: {opt: O1}\nstages:", "key 'compile'; it is stages.compile"),
        ("stages:", "unroll: 3\nstages:", "key 'unroll'; it is stages.emit.unroll"),
        ("unroll: 4", "opt: O1", "key 'opt'; it is stages.compile.opt"),
        ("unroll: 4", "abstract: true", "key 'abstract'; it is a top-level key"),
        ("unroll: 4", "rules: [{opt: O1}]", "key 'opt'"),
        ("stages:", "stages:\n  memory: {}", "stage 'memory'; it is a top-level key, not a stage"),
    ],
)
def test_a_misplaced_key(project: FakeProject, old: str, new: str, guess: str) -> None:
    project.edit("recipes/demo.yaml", old, new)
    assert refused(project).splitlines()[0].endswith(f": unknown {guess}")


TARGETS = "known targets: rv64-rvp, rv32-rvp, rv64-scalar, rv32-scalar, cortex-m4, host"


KEYS = "known keys: schema, name, extends, abstract, target, model, stages, memory, matrix"
SOURCES = "give exactly one of file, url, zoo, op, chain; got"


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ("target: rv64-rvp", "targit: rv64-rvp", "3:1: unknown key 'targit'; did you mean 'target'?", KEYS),
        ("unroll: 4", "rules: [{name: a, layuot: NHWC}]", "6:28: unknown key 'layuot'; did you mean 'layout'?",
         "known keys: name, layout"),
        ("unroll: 4", "rules: [{name: a, layout: NHWX}]",
         "6:36: stages.emit.rules.0.layout: should be 'NHWC' or 'NCHW', is 'NHWX'; did you mean 'NHWC'?", ""),
        ("unroll: 4", "unroll: four", "6:18: stages.emit.unroll: should be a valid integer, is 'four'", ""),
        ("  compile:", "  complie:", "7:3: unknown stage 'complie'; did you mean 'compile'?",
         "known stages: import, emit, compile, report"),
        ("rv64-rvp", "rv64-rpv", "3:9: unknown target 'rv64-rpv'; did you mean 'rv64-rvp'?", TARGETS),
        ("target: rv64-rvp\n", "", "1:1: missing key 'target'", TARGETS),
        ("file: model.txt", "file: model.txt, zoo: ds_cnn", f"4:8: model: {SOURCES} file and zoo", ""),
        ("file: model.txt", "dtype: int8", f"4:8: model: {SOURCES} 'dtype'", ""),
        ("schema: 1", 'schema: "1"', "1:9: schema: should be the number 1, is the text '1'", ""),
        ("name: demo", "name: ../demo",
         "2:7: name: should be 'demo', the name of the file, or be omitted; is '../demo'", ""),
        ("unroll: 4", "window: 3", "6:18: stages.emit.window: should be a list such as [3, 3], is 3", ""),
        ("flags: [-g]", "flags: -g", "9:12: stages.compile.flags: should be a list, is '-g'", ""),
        ("{file: model.txt}", "{url: 'https://example.org/m.tflite', sha256: abc}",
         "4:54: model.sha256: should be 64 hexadecimal digits (0-9, a-f), is 'abc'", ""),
    ],
)  # fmt: skip
def test_an_error_shows_the_line(project: FakeProject, old: str, new: str, message: str, hint: str) -> None:
    project.edit("recipes/demo.yaml", old, new)
    line, column = map(int, message.split(":")[:2])
    text = (project.root / "recipes/demo.yaml").read_text().splitlines()[line - 1]
    place = f"{line:5} | {text}\n      | {' ' * (column - 1)}^"
    assert refused(project) == f"recipes/demo.yaml:{message}\n{place}" + (f"\n{hint}" if hint else "")


def test_further_errors_are_counted_and_the_first_ones_located(project: FakeProject) -> None:
    project.edit("recipes/demo.yaml", "unroll: 4", "unroll: four")
    project.edit("recipes/demo.yaml", "opt: O2", "opt: {a: 1}")
    assert refused(project).endswith("\nand 1 more mistake, at recipes/demo.yaml:8:10")
    wrong = "".join(f"    wrong{number}: 1\n" for number in range(5))
    project.edit("recipes/demo.yaml", "    opt: {a: 1}\n", f"    opt: {{a: 1}}\n{wrong}")
    assert "and 6 more mistakes, such as at recipes/demo.yaml:" in refused(project)


def test_empty_and_odd_files(project: FakeProject) -> None:
    project.recipe("")
    assert refused(project).startswith(
        "recipes/demo.yaml:1:1: a recipe is a mapping with schema, target, model, stages"
    )
    project.recipe("- 1\n")
    assert "recipes/demo.yaml:1:1: a recipe is a mapping" in refused(project)


def test_dictionary(project: FakeProject) -> None:
    data = {"schema": 1, "target": "host", "model": {"zoo": "ds_cnn"}, "stages": {"emit": {"window": [2, 3]}}}
    emit = load(project, data).recipe.config("emit")
    assert emit is not None and emit.model_dump()["window"] == (2, 3)
    message = refused(project, {**data, "stages": {"emit": {"windw": 1}}})
    assert message.startswith("recipe['stages']['emit']['windw']: unknown key 'windw'; did you mean 'window'?\n")
    assert "recipe: YAML reads the key 1 as a number" in refused(project, {**data, 1: 2})


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        ("prefix: Kws", f"stages.emit.prefix: {invalid_name('Kws', IDENTIFIER_PATTERN)}"),
        ("alignment: 4", "stages.emit.alignment: should be 8, 16, 32 or 64, is 4"),
        ('alignment: "16"', "stages.emit.alignment: should be the number 16, is the text '16'"),
    ],
)
def test_invalid_options_of_built_in_stages(tmp_path: Path, emit: str, expected: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(f"schema: 1\ntarget: host\nmodel: {{zoo: ds_cnn}}\nstages: {{emit: {{{emit}}}}}\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(path), root=ROOT, registry=default_registry())
    assert str(caught.value).splitlines()[0].endswith(expected)
