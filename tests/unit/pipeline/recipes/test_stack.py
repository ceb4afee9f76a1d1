"""The stack that a recipe gives its target: region and size."""

from pathlib import Path

import pytest

from pipeline.errors import RecipeError
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipe
from tests.support.emitted import ROOT


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
