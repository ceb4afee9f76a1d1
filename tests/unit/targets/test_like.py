"""A core or board that is like another: what it says replaces, the rest is the other's."""

from pathlib import Path

import pytest

from pipeline.errors import RecipeError
from pipeline.project import Project
from pipeline.recipes.targets import load_targets

TARGETS = """\
schema: 1
cores:
  soft-m4:
    like: cortex-m4
    fpu: false
    compiler: {flags: ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"]}
  softer-m4: {like: soft-m4, kernels: [generic]}
boards:
  small:
    like: nucleo-f446re
    core: softer-m4
    machine: null
    memory: {ram: {length: 64K}}
"""


def test_a_misspelt_class_of_a_timing_model_is_one_of_the_others(tmp_path: Path) -> None:
    text = "schema: 1\ntimings:\n  quick: {like: ibex, classes: {CLASS: {cycles: 2}}}\n"
    (tmp_path / "pipeline.yaml").write_text(text.replace("CLASS", "multiply_hi"))
    told = r"yaml:3:33: timings.quick.classes.multiply_hi: there is no .* in ibex; did you mean 'multiply_high'"
    with pytest.raises(RecipeError, match=told):
        load_targets(Project(tmp_path))
    (tmp_path / "pipeline.yaml").write_text(text.replace("CLASS", "entirely_new"))
    with pytest.raises(RecipeError, match=r"missing key 'mnemonics' in timings\.quick.classes.entirely_new"):
        load_targets(Project(tmp_path))


def test_what_is_not_said_is_the_others(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    found = load_targets(Project(tmp_path))
    usual, board = found["cortex-m4"], found["nucleo-f446re"]
    (tmp_path / "pipeline.yaml").write_text(TARGETS)
    found = load_targets(Project(tmp_path))
    soft, softer, small = found["soft-m4"], found["softer-m4"], found["small"]
    assert soft.compiler == usual.compiler.model_copy(update={"flags": soft.compiler.flags})
    assert (soft.fpu, soft.kernels, soft.memory) == (False, usual.kernels, usual.memory)
    assert (softer.compiler, softer.kernels) == (soft.compiler, ("generic",))
    assert small.core == "softer-m4" and small.simulator == usual.simulator != board.simulator
    assert small.memory is not None and board.memory is not None
    assert small.memory.regions["rom"] == board.memory.regions["rom"]
    assert small.memory.regions["ram"].length == 64 << 10


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("like: cortex-m4", "like: cortex-m5", "pipeline.yaml:4:11: cores.soft-m4.like: unknown core 'cortex-m5'; did"),
        ("like: cortex-m4", "like: softer-m4", "refers to itself"),
        ("like: cortex-m4", "like: [a, true]", "cores.soft-m4.like: should be the name of a core, is ['a', true]"),
        ("fpu: false", "fpux: false", "pipeline.yaml:5:5: unknown key 'fpux'; did you mean 'fpu'?"),
        ("ram: {", "raam: {", "boards.small.memory.raam: there is no 'raam' in nucleo-f446re; did you mean 'ram'?"),
        ("length: 64K", "length: 64Q", "pipeline.yaml:13:28: boards.small.memory.ram.length: a size is"),
    ],
)
def test_mistakes_are_shown_where_they_are(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "pipeline.yaml").write_text(TARGETS.replace(old, new))
    with pytest.raises(RecipeError) as caught:
        load_targets(Project(tmp_path))
    assert told in str(caught.value)
