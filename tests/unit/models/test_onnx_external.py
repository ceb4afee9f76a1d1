"""ONNX files with their constants in files beside them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

pytest.importorskip("onnx")

import onnx

from stages.base import StageError
from stages.models.onnx_external import external_files, whole
from tests.support.onnx_graphs import drawn, model, node


def written(folder: Path, location: str = "net.weights") -> Path:
    constants = {"w": drawn(1, 4, 3, 3, 3), "b": drawn(2, 4)}
    proto = model([node("Conv", ["x", "w", "b"], ["y"])], {"x": (1, 3, 8, 8)}, ["y"], constants)
    onnx.save(proto, folder / "net.onnx", save_as_external_data=True, location=location, size_threshold=0)
    return folder / "net.onnx"


def test_a_file_is_the_same_as_one_with_all_inside(tmp_path: Path) -> None:
    path = written(tmp_path)
    files = external_files(path)
    assert files == {"net.weights": tmp_path / "net.weights"}
    made = onnx.load_model_from_string(whole(path.read_bytes(), files, "net.onnx"))
    assert [onnx.numpy_helper.to_array(one).tolist() for one in made.graph.initializer] == [
        drawn(1, 4, 3, 3, 3).tolist(),
        drawn(2, 4).tolist(),
    ]


def test_files_that_are_missing_or_too_short(tmp_path: Path) -> None:
    path = written(tmp_path)
    data, files = path.read_bytes(), external_files(path)
    files["net.weights"].write_bytes(files["net.weights"].read_bytes()[:20])
    with pytest.raises(StageError, match=r"net.onnx has the constant 'w' in 'net.weights', which is too short"):
        whole(data, files, "net.onnx")
    files["net.weights"].unlink()
    with pytest.raises(StageError, match=r"net.onnx has the constant 'w' in 'net.weights': No such file"):
        whole(data, files, "net.onnx")


def test_a_file_that_is_not_there_is_named_when_the_recipe_is_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "net.weights").unlink()
    with pytest.raises(StageError, match=r"net.onnx has constants in 'net.weights', which is not beside it") as told:
        external_files(path)
    assert told.value.at == ("model", "file") and "onnx.save" in told.value.hint


def test_names_that_lead_elsewhere(tmp_path: Path) -> None:
    path = written(tmp_path, "safe.weights")
    path.write_bytes(path.read_bytes().replace(b"safe.weights", b"../e.weights"))
    with pytest.raises(StageError, match=r"net.onnx has constants in '../e.weights', which is not in its folder"):
        external_files(path)


@pytest.mark.parametrize("data", [b"", b"hello", b"\x3a\xff\xff\xff\xff\x0f", bytes(range(256))])
def test_what_is_no_onnx_file_has_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "net.onnx").write_bytes(data)
    assert external_files(tmp_path / "net.onnx") == {}


def test_a_damaged_file_has_none_or_is_refused(tmp_path: Path) -> None:
    """Whatever bit is another one: import tells what is wrong with the file."""
    path = written(tmp_path)
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with contextlib.suppress(StageError):
            external_files(path)
