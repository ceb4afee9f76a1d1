"""A model that is too large in any case is refused once it is imported, with the sizes and where they are from."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.base import StageError
from stages.compile import STAGE, CompileConfig
from stages.emit import STAGE as EMIT
from stages.emit import EmitConfig
from stages.models import zoo
from stages.models.spec import FileModel
from stages.targets.load import load_target
from stages.targets.spec import Target

MODEL = FileModel(file="net.tflite")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """As much of import's artifact as is looked at. ds_cnn's weights are 22,016 bytes; its first layer has 8,490."""
    folder = tmp_path_factory.mktemp("import")
    (folder / "model.tflite").write_bytes(zoo.build("ds_cnn"))
    return {"import": folder}


def with_memory(rom: int, ram: int, stack: int = 1000) -> Target:
    target = load_target("rv64-rvp")
    assert target.memory is not None
    regions = {"rom": rom, "ram": ram}
    changed = {name: getattr(target.memory, name).model_copy(update={"length": n}) for name, n in regions.items()}
    return target.model_copy(update={"memory": target.memory.model_copy(update={**changed, "stack": stack})})


def foresee(target: Target, made: dict[str, Path]) -> None:
    STAGE.foresee(CompileConfig(), MODEL, target, Path(), made)


def test_what_just_fits_passes_and_one_byte_less_does_not(imported: dict[str, Path]) -> None:
    foresee(with_memory(22_016, 9_490), imported)
    with pytest.raises(StageError) as caught:
        foresee(with_memory(22_015, 9_490), imported)
    lines = str(caught.value).splitlines()
    assert lines[0] == ("the model does not fit target rv64-rvp: rom needs 22,016 bytes or more and has 22,015")
    assert lines[1].startswith("rom: the weights of 10 layers, most those of operator ")
    assert lines[-1] == "take a smaller model, or raise memory.*.length of rv64-rvp in pipeline.yaml"
    with pytest.raises(StageError) as caught:
        foresee(with_memory(22_016, 9_489), imported)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("ram needs 9,490 bytes or more and has 9,489")
    assert lines[1].startswith("ram: operator ")
    assert lines[1].endswith("stack 1,000")


def test_both_are_one_message_of_five_lines_at_most(imported: dict[str, Path]) -> None:
    with pytest.raises(StageError) as caught:
        foresee(with_memory(10, 10), imported)
    text = str(caught.value)
    assert "rom needs" in text and "; ram needs" in text
    assert len(text.splitlines()) <= 5


def test_nothing_is_said_without_an_imported_model_or_without_a_memory(imported: dict[str, Path]) -> None:
    foresee(with_memory(10, 10), {})
    foresee(load_target("host"), imported)


def test_an_arena_above_its_limit_in_any_case(imported: dict[str, Path]) -> None:
    target = load_target("host")
    for limit in (None, 8_490):
        EMIT.foresee(EmitConfig(arena_limit=limit), MODEL, target, Path(), imported)
    told = r"the arena needs 8,490 bytes or more, the recipe's memory.arena_limit is 8,489\noperator \d+ \(CONV"
    with pytest.raises(StageError, match=told) as caught:
        EMIT.foresee(EmitConfig(arena_limit=8_489), MODEL, target, Path(), imported)
    assert caught.value.at == ("memory", "arena_limit")
