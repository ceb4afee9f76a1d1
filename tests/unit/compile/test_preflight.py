"""A model that is too large in any case is refused once it is imported, with the sizes and where they are from."""

from pathlib import Path
from typing import Literal

import pytest

from stages.backends.targets.load import load_target
from stages.backends.targets.memory import Memory
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.compile import STAGE, CompileConfig
from stages.ir.models import zoo
from stages.ir.models.spec import FileModel

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


def preflight(target: Target, made: dict[str, Path], streaming: Literal[False] | None = False) -> None:
    STAGE.preflight(CompileConfig(streaming=streaming), MODEL, target, Path(), made)


def test_what_just_fits_passes_and_one_byte_less_does_not(imported: dict[str, Path]) -> None:
    preflight(with_memory(22_016, 9_490), imported)
    with pytest.raises(StageError) as caught:
        preflight(with_memory(22_015, 9_490), imported)
    lines = str(caught.value).splitlines()
    assert lines[0] == ("the model does not fit target rv64-rvp: rom needs 22,016 bytes or more, but has 22,015")
    assert lines[1].startswith("rom: weights of 10 layers; the largest: operator ")
    assert lines[-1] == "use a smaller model, or raise memory.*.length of rv64-rvp in pipeline.yaml"
    with pytest.raises(StageError) as caught:
        preflight(with_memory(22_016, 9_489), imported)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("ram needs 9,490 bytes or more, but has 9,489")
    assert lines[1].startswith("ram: operator ")
    assert lines[1].endswith("stack 1,000")
    preflight(with_memory(22_016, 1_008), imported, streaming=None)  # layers may run by rows


def with_regions(*arena: int, weights: tuple[int, ...] = (1 << 20,)) -> Target:
    """The regions may be of any length; the stack of 1,000 bytes is in the first of the arena."""
    holds = {"flash": ["code", "constants", "weights"], "qspi": ["weights"], "dtcm": ["data", "stack", "arena"]}
    lengths = dict(zip(("flash", "qspi"), weights, strict=False)) | dict(zip(("dtcm", "sram"), arena, strict=False))
    regions = {
        name: {"origin": number << 24, "length": 1 << 20, "holds": holds.get(name, ["arena"])}
        for number, name in enumerate(lengths)
    }
    memory = Memory.model_validate({**regions, "stack": 1008})
    changed = {name: memory.regions[name].model_copy(update={"length": length}) for name, length in lengths.items()}
    memory = memory.model_copy(update={**changed, "stack": 1000})
    return load_target("rv64-rvp").model_copy(update={"memory": memory})


def test_weights_are_divided_among_regions(imported: dict[str, Path]) -> None:
    preflight(with_regions(1 << 20, weights=(22_000, 16)), imported)
    with pytest.raises(StageError, match="flash and qspi need 22,016 bytes or more, but have 22,015"):
        preflight(with_regions(1 << 20, weights=(22_000, 15)), imported)
