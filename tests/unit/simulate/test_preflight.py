"""Files of inputs that cannot be right are refused before the model is imported, or as soon as it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.backends.targets.load import load_target
from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import FileModel, ZooModel
from stages.simulate import STAGE, InputsConfig, SimulateConfig
from tests.support.edited_models import together

FILE = FileModel(file="net.tflite")


def network(features: int, dtype: str = "float32") -> bytes:
    b = ModelBuilder()
    x = b.input("x", (1, features), dtype, *(() if dtype == "float32" else (0.1, 0)))
    b.output(b.relu(x))
    return b.build()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "net.tflite").write_bytes(network(8))
    (tmp_path / "right.bin").write_bytes(bytes(32))
    (tmp_path / "short.bin").write_bytes(bytes(31))
    (tmp_path / "picture.png").write_bytes(bytes(32))
    np.save(tmp_path / "right.npy", np.zeros((3, 8), np.float32))
    np.save(tmp_path / "wide.npy", np.zeros((3, 9), np.float32))
    for name, labels in (("labels", [0, 7, 1]), ("many", [0] * 4), ("high", [0, 8, 1])):
        np.save(tmp_path / f"{name}.npy", np.array(labels, np.int64))
    return tmp_path


def preflight(root: Path, *files: str, labels: str | None = None, model: ModelSource = FILE, made: Any = None) -> None:
    config = SimulateConfig(inputs=InputsConfig(files=files, labels=labels))
    STAGE.preflight(config, model, load_target("host"), root, made or {})


def test_an_accelerator_that_the_simulator_lacks_is_refused_before_anything_runs(root: Path) -> None:
    board = load_target("rv32-ne16")
    STAGE.preflight(SimulateConfig(), FILE, board, root, {})
    elsewhere = load_target("cortex-m4").model_copy(update={"accelerator": board.accelerator, "name": "mine"})
    with pytest.raises(StageError, match=r"accelerator ne16 of target mine needs Spike; its core is simulated on qemu"):
        STAGE.preflight(SimulateConfig(), FILE, elsewhere, root, {})
    assert board.accelerator is not None
    lacking = board.model_copy(update={"accelerator": board.accelerator.model_copy(update={"kind": "lacks"})})
    with pytest.raises(StageError, match="accelerator lacks has no device for Spike"):
        STAGE.preflight(SimulateConfig(), FILE, lacking, root, {})


def test_right_files_pass(root: Path) -> None:
    preflight(root)
    preflight(root, "right.bin", "right.npy")
    preflight(root, "right.npy", labels="labels.npy")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("short.bin", r"short.bin: has 31 bytes, one inference takes 32 \(x \[1, 8\] float32\)"),
        ("wide.npy", r"has shape \[3, 9\], the network's input x is \[1, 8\]"),
    ],
)
def test_wrong_files_are_refused_before_import(root: Path, name: str, told: str) -> None:
    with pytest.raises(StageError, match=told) as caught:
        preflight(root, "right.bin", name)
    assert caught.value.at == ("stages", "simulate", "inputs", "files", 1)


@pytest.mark.parametrize(
    ("labels", "told"),
    [("many", "is not one integer class for each of the 3"), ("high", "label 8 of inference 1 is not a class")],
)
def test_wrong_labels_are_refused_before_import(root: Path, labels: str, told: str) -> None:
    with pytest.raises(StageError, match=told):
        preflight(root, "right.npy", labels=f"{labels}.npy")


def test_of_a_model_that_is_not_at_hand_only_the_kind_is_judged_until_it_is_imported(root: Path) -> None:
    model = ZooModel(zoo="ds_cnn")
    preflight(root, "short.bin", model=model)
    with pytest.raises(StageError, match=r"ends in \.png"):
        preflight(root, "picture.png", model=model)
    (root / "import").mkdir()
    (root / "import" / "model.tflite").write_bytes(network(8, "int8"))
    with pytest.raises(StageError, match="has 31 bytes, one inference takes 8"):
        preflight(root, "short.bin", model=model, made={"import": root / "import"})


def test_the_inputs_are_those_of_the_chosen_signature(root: Path) -> None:
    (root / "net.tflite").write_bytes(together(network(4), network(8), signatures={"four": 0, "eight": 1}))
    preflight(root, "right.bin", model=FileModel(file="net.tflite", signature="eight"))
    with pytest.raises(StageError, match="takes 16"):
        preflight(root, "right.bin")


def test_no_input_at_all_is_refused(root: Path) -> None:
    config = SimulateConfig(inputs=InputsConfig(random=0, extremes=False))
    with pytest.raises(StageError, match="there is no input"):
        STAGE.preflight(config, FILE, load_target("host"), root, {})
