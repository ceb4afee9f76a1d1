"""What a user reads when a recipe is wrong: the file, line, column and the line itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.errors import RecipeError
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import LoadedRecipe, load_recipe
from pipeline.recipes.targets import load_targets
from stages.options.names import IDENTIFIER_PATTERN, why_not
from tests.support.emitted import ROOT
from tests.unit.pipeline.conftest import RECIPE, FakeProject


def load(project: FakeProject, name: str | Mapping[str, object] = "demo", **variables: str) -> LoadedRecipe:
    return load_recipe(name, root=project.root, registry=project.registry, variables=variables)


def refused(project: FakeProject, name: str | Mapping[str, object] = "demo", **variables: str) -> str:
    """The message, which is what the user reads: one to five lines."""
    with pytest.raises(RecipeError) as caught:
        load(project, name, **variables)
    message = str(caught.value)
    assert 1 <= len(message.splitlines()) <= 5
    return message


def test_good_recipe(project: FakeProject) -> None:
    loaded = load(project)
    assert (loaded.recipe.name, loaded.target.name, loaded.target.word_bits) == ("demo", "rv64-rvp", 64)
    emit, compiler = loaded.recipe.config("emit"), loaded.recipe.config("compile")
    assert emit is not None and emit.model_dump()["unroll"] == 4
    assert compiler is not None and compiler.model_dump()["flags"] == ("-g",)
    assert loaded.recipe.config("report") is None


def test_recipe_is_frozen(project: FakeProject) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load(project).recipe.name = "other"


@pytest.mark.parametrize(("old", "name"), [("rv64-rvp", "target"), ("{file: model.txt}", "model")])
def test_several_need_a_matrix(project: FakeProject, old: str, name: str) -> None:
    project.edit("recipes/demo.yaml", old, "[a, b]")
    hint = f"for several a recipe needs a matrix with the axis {name}: `matrix: {{{name}: [...]}}`"
    assert refused(project).splitlines()[-1] == hint


@pytest.mark.parametrize(
    ("old", "new", "guess"),
    [
        ("stages:", "compile: {opt: O1}\nstages:", "key 'compile'; it is stages.compile"),
        ("stages:", "unroll: 3\nstages:", "key 'unroll'; it is stages.emit.unroll"),
        ("unroll: 4", "opt: O1", "key 'opt'; it is stages.compile.opt"),
        ("unroll: 4", "abstract: true", "key 'abstract'; it stands at the top, not in emit"),
        ("unroll: 4", "rules: [{opt: O1}]", "key 'opt'"),
        ("stages:", "stages:\n  memory: {}", "stage 'memory'; it stands at the top, not in stages"),
    ],
)
def test_a_key_that_is_one_elsewhere(project: FakeProject, old: str, new: str, guess: str) -> None:
    project.edit("recipes/demo.yaml", old, new)
    assert refused(project).splitlines()[0].endswith(f": unknown {guess}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "target: rv64-rvp",
            "targit: rv64-rvp",
            """\
recipes/demo.yaml:3:1: unknown key 'targit'; did you mean 'target'?
    3 | targit: rv64-rvp
      | ^
known keys: schema, name, extends, abstract, target, model, stages, memory, matrix""",
            id="unknown key at the top",
        ),
        pytest.param(
            "unroll: 4",
            "unrol: 4",
            """\
recipes/demo.yaml:6:10: unknown key 'unrol'; did you mean 'unroll'?
    6 |   emit: {unrol: 4}
      |          ^
known keys: unroll, rules, window, after, use""",
            id="unknown key in a stage",
        ),
        pytest.param(
            "unroll: 4",
            "rules: [{name: a, layuot: NHWC}]",
            """\
recipes/demo.yaml:6:28: unknown key 'layuot'; did you mean 'layout'?
    6 |   emit: {rules: [{name: a, layuot: NHWC}]}
      |                            ^
known keys: name, layout""",
            id="unknown key in a list",
        ),
        pytest.param(
            "unroll: 4",
            "rules: [{name: a, layout: NHWX}]",
            """\
recipes/demo.yaml:6:36: stages.emit.rules.0.layout: should be 'NHWC' or 'NCHW', is 'NHWX'; did you mean 'NHWC'?
    6 |   emit: {rules: [{name: a, layout: NHWX}]}
      |                                    ^""",
            id="unknown word",
        ),
        pytest.param(
            "unroll: 4",
            "unroll: four",
            """\
recipes/demo.yaml:6:18: stages.emit.unroll: should be a valid integer, is 'four'
    6 |   emit: {unroll: four}
      |                  ^""",
            id="wrong type",
        ),
        pytest.param(
            "opt: O2",
            "opt: yes",
            """\
recipes/demo.yaml:8:10: stages.compile.opt: should be a valid string, is true
    8 |     opt: yes
      |          ^""",
            id="a YAML boolean is no string",
        ),
        pytest.param(
            "  compile:",
            "  complie:",
            """\
recipes/demo.yaml:7:3: unknown stage 'complie'; did you mean 'compile'?
    7 |   complie:
      |   ^
known stages: import, emit, compile, report""",
            id="unknown stage",
        ),
        pytest.param(
            "emit: {unroll: 4}",
            "emit: 4",
            """\
recipes/demo.yaml:6:9: stages.emit: should be a mapping, is 4
    6 |   emit: 4
      |         ^""",
            id="stage is no mapping",
        ),
        pytest.param(
            "rv64-rvp",
            "rv64-rpv",
            """\
recipes/demo.yaml:3:9: unknown target 'rv64-rpv'; did you mean 'rv64-rvp'?
    3 | target: rv64-rpv
      |         ^
known targets: rv64-rvp, rv32-rvp, rv64-scalar, rv32-scalar, cortex-m4, host""",
            id="unknown target",
        ),
        pytest.param(
            "target: rv64-rvp\n",
            "",
            """\
recipes/demo.yaml:1:1: missing key 'target'
    1 | schema: 1
      | ^
known targets: rv64-rvp, rv32-rvp, rv64-scalar, rv32-scalar, cortex-m4, host""",
            id="missing key",
        ),
        pytest.param(
            "file: model.txt",
            "file: model.txt, zoo: ds_cnn",
            """\
recipes/demo.yaml:4:8: model: give exactly one of file, url, zoo, op; here is file and zoo
    4 | model: {file: model.txt, zoo: ds_cnn}
      |        ^""",
            id="two models",
        ),
        pytest.param(
            "file: model.txt",
            "dtype: int8",
            """\
recipes/demo.yaml:4:8: model: give exactly one of file, url, zoo, op; here is 'dtype' instead
    4 | model: {dtype: int8}
      |        ^""",
            id="no model",
        ),
        pytest.param(
            "file: model.txt",
            "url: http://x/y, sha256: 12",
            """\
recipes/demo.yaml:4:34: model.sha256: should be a valid string, is 12
    4 | model: {url: http://x/y, sha256: 12}
      |                                  ^""",
            id="wrong type in a model",
        ),
        pytest.param(
            "schema: 1",
            "schema: 2",
            """\
recipes/demo.yaml:1:9: schema: should be 1, is 2
    1 | schema: 2
      |         ^""",
            id="version",
        ),
        pytest.param(
            "schema: 1",
            'schema: "1"',
            """\
recipes/demo.yaml:1:9: schema: should be the number 1, is the text '1'
    1 | schema: "1"
      |         ^""",
            id="version as text",
        ),
        pytest.param(
            "name: demo",
            "name: ../demo",
            """\
recipes/demo.yaml:2:7: name: should be 'demo', as the file is called, or be left out, is '../demo'
    2 | name: ../demo
      |       ^""",
            id="name that is no folder's name",
        ),
        pytest.param(
            "  emit: {unroll: 4}\n",
            "  emit: {unroll: 4\n",
            """\
recipes/demo.yaml:7:10: YAML syntax: a comma or } is missing here, in the mapping that begins at 6:9
    7 |   compile:
      |          ^""",
            id="syntax",
        ),
        pytest.param(
            "    opt: O2\n",
            "    opt: O2\n    opt: O3\n",
            """\
recipes/demo.yaml:9:5: key 'opt' is given twice
    9 |     opt: O3
      |     ^""",
            id="key given twice",
        ),
        pytest.param(
            "    opt: O2\n",
            "\topt: O2\n",
            """\
recipes/demo.yaml:8:1: YAML syntax: a tab does not indent
    8 | \topt: O2
      | ^
indent with spaces, not with a tab""",
            id="tab",
        ),
    ],
)
def test_mistake_shows_the_line(project: FakeProject, old: str, new: str, message: str) -> None:
    project.edit("recipes/demo.yaml", old, new)
    assert refused(project) == message


def test_further_mistakes_are_counted_and_the_first_of_them_located(project: FakeProject) -> None:
    project.edit("recipes/demo.yaml", "unroll: 4", "unroll: four")
    project.edit("recipes/demo.yaml", "opt: O2", "opt: {a: 1}")
    assert refused(project).endswith("\nand 1 more mistake, at recipes/demo.yaml:8:10")
    wrong = "".join(f"    wrong{number}: 1\n" for number in range(5))
    project.edit("recipes/demo.yaml", "    opt: {a: 1}\n", f"    opt: {{a: 1}}\n{wrong}")
    assert "and 6 more mistakes, such as at recipes/demo.yaml:" in refused(project)


@pytest.mark.parametrize("value", ["1", "{}", "null", "[1]"])
def test_unknown_stage_on_the_command_line(project: FakeProject, value: str) -> None:
    message = refused(project, set=f"stages.nope={value}")
    assert message.startswith(f"set=stages.nope={value}: unknown stage 'nope'\nknown stages: import, ")


def test_error_knows_its_position(project: FakeProject) -> None:
    project.edit("recipes/demo.yaml", "unroll: 4", "unroll: four")
    with pytest.raises(RecipeError) as caught:
        load(project)
    assert (caught.value.file, caught.value.line, caught.value.column) == ("recipes/demo.yaml", 6, 18)


def test_unknown_recipe(project: FakeProject) -> None:
    project.recipe(RECIPE, "kws")
    assert refused(project, "dmeo") == "unknown recipe 'dmeo'; did you mean 'demo'?\nknown recipes: demo, kws"


def test_empty_and_odd_files(project: FakeProject) -> None:
    project.recipe("")
    assert refused(project).startswith(
        "recipes/demo.yaml:1:1: a recipe is a mapping with schema, target, model, stages"
    )
    project.recipe("- 1\n")
    assert "recipes/demo.yaml:1:1: a recipe is a mapping" in refused(project)


def test_recipe_by_path_and_default_name(project: FakeProject) -> None:
    project.write("elsewhere/mine.yaml", RECIPE.replace("name: demo\n", ""))
    assert load(project, "elsewhere/mine.yaml").recipe.name == "mine"
    assert "does not exist" in refused(project, "elsewhere/nothing.yaml")


def test_dictionary(project: FakeProject) -> None:
    data = {"schema": 1, "target": "host", "model": {"zoo": "ds_cnn"}, "stages": {"emit": {"window": [2, 3]}}}
    emit = load(project, data).recipe.config("emit")
    assert emit is not None and emit.model_dump()["window"] == (2, 3)
    message = refused(project, {**data, "stages": {"emit": {"windw": 1}}})
    assert message.startswith("recipe['stages']['emit']['windw']: unknown key 'windw'; did you mean 'window'?\n")
    assert "recipe: the key 1 is read as a number" in refused(project, {**data, 1: 2})


def test_dictionary_with_python_values(project: FakeProject) -> None:
    data = {"schema": 1, "target": "host", "model": {"zoo": "ds_cnn"}, "stages": {"emit": {"window": (2, 3)}}}
    assert load(project, data).recipe.name == "recipe"
    assert "YAML's types only" in refused(project, {**data, "model": {"file": project.root}})


def test_empty_stage_has_defaults(project: FakeProject) -> None:
    project.edit("recipes/demo.yaml", "emit: {unroll: 4}", "emit:")
    emit = load(project).recipe.config("emit")
    assert emit is not None and emit.model_dump()["unroll"] == 1


def test_yaml_1_2_floats(project: FakeProject) -> None:
    loaded = load(project, set="model={op: conv2d, shape: [4, 4, 1], out_channels: 2, input: {scale: 1e-3}}")
    assert loaded.recipe.model.model_dump()["input"]["scale"] == 0.001


def test_mistake_in_pipeline_yaml(project: FakeProject) -> None:
    project.edit("pipeline.yaml", "    counter: none", "    conter: none")
    with pytest.raises(RecipeError) as caught:
        load_targets(project.root)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("pipeline.yaml:")
    assert lines[0].endswith("unknown key 'conter'; did you mean 'counter'?")
    assert lines[1].endswith("|     conter: none")
    assert lines[2].endswith("|     ^")


BOARD = """
boards:
  my-board:
    core: cortex-m4
    title: a board
    memory: {rom: {origin: 0, length: 1M}, ram: {origin: "0x20000000", length: 64K}}
"""


def test_board_is_a_target(project: FakeProject) -> None:
    with (project.root / "pipeline.yaml").open("a") as file:
        file.write(BOARD)
    board = load(project, target="my-board").target
    assert (board.name, board.core, board.memory.ram.length) == ("my-board", "cortex-m4", 65536)


@pytest.mark.parametrize(
    ("old", "new", "message", "shown"),
    [
        (
            "core: cortex-m4",
            "core: cortex-m5",
            "unknown core 'cortex-m5'; did you mean 'cortex-m4'?",
            "core: cortex-m5",
        ),
        ("  my-board:", "  cortex-m4:", "board 'cortex-m4' has the name of a core", "cortex-m4:"),
        ("core: cortex-m4", "core: host", "core 'host' runs under an operating system, it has no boards", "core: host"),
        ("core: cortex-m4\n", "\n", "missing key 'core' in boards.my-board", "title: a board"),
    ],
)
def test_mistake_in_a_board(project: FakeProject, old: str, new: str, message: str, shown: str) -> None:
    with (project.root / "pipeline.yaml").open("a") as file:
        file.write(BOARD.replace(old, new))
    with pytest.raises(RecipeError) as caught:
        load_targets(project.root)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("pipeline.yaml:")
    assert message in lines[0]
    assert lines[1].rpartition("|")[2].strip() == shown


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("emit: {unroll: 4}", "emit: {window: 3}", "stages.emit.window: should be a list such as [3, 3], is 3"),
        ("flags: [-g]", "flags: -g", "stages.compile.flags: should be a list, is '-g'"),
        (
            "{file: model.txt}",
            "{url: 'https://example.org/m.tflite', sha256: abc}",
            "model.sha256: should be 64 hexadecimal digits (0-9, a-f), is 'abc'",
        ),
    ],
)
def test_plain_words(project: FakeProject, old: str, new: str, message: str) -> None:
    project.edit("recipes/demo.yaml", old, new)
    assert refused(project).splitlines()[0].partition(": ")[2] == message


@pytest.mark.parametrize(
    ("emit", "told"),
    [
        ("prefix: Kws", f"stages.emit.prefix: {why_not('Kws', IDENTIFIER_PATTERN)}"),
        ("alignment: 4", "stages.emit.alignment: should be 8, 16, 32 or 64, is 4"),
        ('alignment: "16"', "stages.emit.alignment: should be the number 16, is the text '16'"),
    ],
)
def test_options_of_another_form(tmp_path: Path, emit: str, told: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(f"schema: 1\ntarget: host\nmodel: {{zoo: ds_cnn}}\nstages: {{emit: {{{emit}}}}}\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(path), root=ROOT, registry=default_registry())
    assert str(caught.value).splitlines()[0].endswith(told)
