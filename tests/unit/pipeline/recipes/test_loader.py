"""Recipes and those that they extend: errors show file, line, column and the line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


CONV = "op: conv2d, shape: [8, 8, 8], out_channels: 4"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{file: ''}", "4:15: model.file: should be the name of a file, is empty"),
        ("{file: ~nouser/x}", "4:15: model.file: there is no user 'nouser' with a home folder"),
        ('{file: "a\\0b"}', "4:15: model.file: should be the name of a file, has a NUL character in it"),
        ("", "4:7: model: should be a mapping with one of file, url, zoo, op"),
        ("{zoo: dscnn}", "4:14: model.zoo: unknown zoo model 'dscnn'; did you mean 'ds_cnn'? Known: autoencoder, "),
        ("{op: conv3d, shape: [1]}", "4:13: model.op: unknown operator 'conv3d'; did you mean 'conv2d'?"),
        (f"{{{CONV}, kernel: [3, 3, 3]}}", "4:64: model.kernel: should have at most 2 items, has 3"),
        (f"{{{CONV}, input: {{scale: 1, zero_point: 300}}}}", "4:86: model.input.zero_point: a zero point of int8 is"),
        (f"{{{CONV}, input: {{scale: .nan}}}}", "model.input.scale: should be a finite number, is .nan"),
        (f"{{{CONV}, input: {{scale: 0}}}}", "model.input.scale: should be greater than or equal to 1.17549e-38, is 0"),
        (f"{{{CONV}, groups: 3}}", "model.groups: groups 3 must divide the input's and the output's channels"),
        ("{op: add, shape: [99999, 99999]}", "4:25: model.shape: makes a tensor of 9,999,800,001 elements"),
        ("{op: pad, shape: [4], pads: [[0, 4294967296]]}",
         "model.pads.0.1: should be less than or equal to 2147483647"),
        ("{op: dequantize, shape: [4], dtype: float32}", "4:44: model.dtype: dequantize reads int8, uint8 or int16"),
        ("{chain: [{frontend: {kind: mfc}}]}",
         "frontend.kind: should be microfrontend, log_mel, mfcc; is mfc; did you mean 'mfcc'?"),
        ("{chain: [{frontend: {mels: 40}}]}", "frontend: needs a kind: microfrontend, log_mel, mfcc"),
        ("{chain: [{zoo: ds_cnn}, {file: a.tflite, incremental: {axis: 9}}]}",
         "4:69: model.chain.1.incremental.axis: should be less than or equal to 7, is 9"),
        ("{chain: [{frontend: {kind: microfrontend}}, {smooth: {}}]}",
         "4:53: model.chain.1.smooth: smooth reads the scores of a network, but the part before it is the front end"),
        ("{chain: [{zoo: ds_cnn}, {file: vad.onnx, incremental: true}]}",
         "4:49: model.chain.1.incremental: incremental is an option of a TFLite file, and 'vad.onnx' is not one"),
    ],
)  # fmt: skip
def test_invalid_models_are_refused_at_their_position(project: FakeProject, entry: str, message: str) -> None:
    project.edit("recipes/demo.yaml", "{file: model.txt}", entry)
    first = refused(project).splitlines()[0]
    assert first.startswith("recipes/demo.yaml:4:") and message in first


@pytest.mark.parametrize(
    ("entry", "message", "last"),
    [
        (
            "{op: add, shape: [4], dtype: float32, input: {scale: 1}}",
            "model.input",
            "dtype is at recipes/demo.yaml:4:37",
        ),
        (
            "{chain: [{frontend: {kind: mfcc, window_ms: 32, window_samples: 400}}]}",
            "frontend.window_samples: states the window a second time; remove it or window_ms",
            "window_ms is at recipes/demo.yaml:4:52",
        ),
        (
            "{chain: [{frontend: {kind: log_mel, step_samples: 160, step_ms: 10}}]}",
            "frontend.step_samples: states the step a second time; remove it or step_ms",
            "step_ms is at recipes/demo.yaml:4:72",
        ),
    ],
)
def test_a_conflicting_value_is_named_too(project: FakeProject, entry: str, message: str, last: str) -> None:
    project.edit("recipes/demo.yaml", "{file: model.txt}", entry)
    first, *_, end = refused(project).splitlines()
    assert message in first and end == last


@pytest.mark.parametrize(
    ("entry", "message", "known"),
    [
        ("{zoo: ds_cnn, layout: nhwc}", "'layout'; it belongs to a model given by file or url",
         "incremental, zoo, dtype, seed, weights"),
        ("{file: a.tflite, zo: a}", "'zo'", "incremental, signature, shapes, constants, states, layout, file"),
        ("{op: relu, shape: [4], layuot: a}", "'layuot'", "op, shape, batch, dtype, input, output, seed"),
        ("{chain: [{frontend: {kind: log_mel, coefficients: 13}}]}", "'coefficients'",
         "kind, sample_rate, window_ms, step_ms, frames, window_samples"),
        ("{chain: [{zoo: ds_cnn}, {smooth: {}, inputs: {a: b}}]}",
         "'inputs'; it belongs to a part given by file or url or zoo", "name, smooth"),
        ("{chain: [{zoo: ds_cnn}, {smooth: {}, incremental: true}]}",
         "'incremental'; it belongs to a part given by file or url or zoo", "name, smooth"),
        ("{chain: [{file: a.tflite, incremental: {frame: 2}}]}", "'frame'; did you mean 'frames'?", "frames, axis"),
        ("{chain: [{zoo: ds_cnn}, {file: a.tflite}, {smooth: {}}], incremental: true}",
         "'incremental'; it is model.chain.0.incremental or model.chain.1.incremental", "chain"),
    ],
)  # fmt: skip
def test_unknown_keys_list_the_keys_of_the_kind(project: FakeProject, entry: str, message: str, known: str) -> None:
    project.edit("recipes/demo.yaml", "{file: model.txt}", entry)
    first, *_, last = refused(project).splitlines()
    assert first.endswith(f": unknown key {message}") and last.startswith(f"known keys: {known}")
    assert "kernel" not in last


def options(project: FakeProject, kind: str, name: str = "child") -> dict[str, Any]:
    config = load(project, name).recipe.config(kind)
    assert config is not None
    return config.model_dump(exclude={"kind"})


def test_mappings_merge_and_lists_are_replaced(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: demo\nstages:\n  compile: {flags: [-O, -W]}\n", "child")
    assert options(project, "compile") == {"opt": "O2", "flags": ("-O", "-W")}
    assert options(project, "emit")["unroll"] == 4


def test_another_source_replaces_the_model(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: demo\nmodel: {zoo: ds_cnn}\n", "child")
    assert load(project, "child").recipe.model.model_dump()["zoo"] == "ds_cnn"
    project.recipe("schema: 1\nextends: child\nmodel: {dtype: uint8}\n", "grandchild")
    model = load(project, "grandchild").recipe.model.model_dump()
    assert (model["zoo"], model["dtype"]) == ("ds_cnn", "uint8")


def test_null_returns_to_the_defaults(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: demo\nstages: {compile: }\n", "child")
    assert options(project, "compile") == {"opt": "O1", "flags": ()}


def test_an_error_points_to_the_file_with_the_value(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: demo\nstages:\n  emit: {window: [1, 2]}\n", "child")
    project.edit("recipes/demo.yaml", "unroll: 4", "unroll: four")
    assert refused(project, "child").startswith("recipes/demo.yaml:6:18: stages.emit.unroll: should be a valid integer")
    project.edit("recipes/child.yaml", "[1, 2]", "[1, two]")
    project.edit("recipes/demo.yaml", "unroll: four", "unroll: 4")
    assert refused(project, "child").startswith(
        "recipes/child.yaml:4:22: stages.emit.window.1: should be a valid integer, is 'two'\n"
        "    4 |   emit: {window: [1, two]}\n"
    )


def test_cycle(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: b\n", "a")
    project.recipe("schema: 1\nextends: a\n", "b")
    assert refused(project, "a").startswith(
        "recipes/b.yaml:2:10: extends forms a cycle: recipes/a.yaml -> recipes/b.yaml -> recipes/a.yaml"
    )


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ("{region: dtmc}", "5:26: stm32h747i-disco has no region 'dtmc'; did you mean 'dtcm'?"),
        ("{bytes: 1M}", "5:25: stm32h747i-disco: a stack of 1,048,576 bytes leaves nothing of the dtcm's 131,072"),
        ("{bytes: much}", "5:25: memory.stack.bytes"),
        (
            "rom",
            "5:17: rom of stm32h747i-disco may hold code, constants, weights, but not stack; dtcm and axi_sram may",
        ),
        ("[8K]", "5:17: memory.stack: should be a mapping"),
    ],
)
def test_stack_of_a_recipe_is_checked_when_it_is_read(tmp_path: Path, stack: str, expected: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(
        f"schema: 1\nname: r\ntarget: stm32h747i-disco\nmodel: {{zoo: ds_cnn}}\nmemory: {{stack: {stack}}}\n"
    )
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(path), root=ROOT, registry=default_registry())
    assert f"r.yaml:{expected}" in str(caught.value)


@pytest.mark.parametrize("stack", ["8192", "{bytes: 8K}"])
def test_stack_of_a_recipe_may_be_a_size_alone(tmp_path: Path, stack: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(f"schema: 1\ntarget: nucleo-f746zg\nmodel: {{zoo: ds_cnn}}\nmemory: {{stack: {stack}}}\n")
    memory = load_recipe(str(path), root=ROOT, registry=default_registry()).target.memory
    assert memory is not None and (memory.stack, memory.home("stack")) == (8192, "dtcm")
