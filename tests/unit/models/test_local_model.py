"""What is known of a model before anything runs."""

from pathlib import Path

import pytest

from stages.base import StageError
from stages.ir.models import zoo
from stages.ir.models.local_model import local_model, sound_model
from stages.ir.models.spec import FileModel


def test_a_file_that_is_not_sound(tmp_path: Path) -> None:
    data = zoo.build("resnet_8")
    (tmp_path / "net.tflite").write_bytes(data)
    (tmp_path / "cut.tflite").write_bytes(data[:3000])
    sound = sound_model(FileModel(file="net.tflite"), tmp_path)
    assert sound is not None and sound.operators == local_model(FileModel(file="net.tflite"), tmp_path, {}).operators
    with pytest.raises(StageError, match=r"^cut\.tflite is a corrupt or truncated TFLite file") as caught:
        sound_model(FileModel(file="cut.tflite"), tmp_path)
    assert caught.value.at == ("model", "file")
    assert local_model(FileModel(file="cut.tflite"), tmp_path, {}) is None


@pytest.mark.parametrize("data", [b"", b"<html>not found</html>", b"version https://git-lfs.github.com/spec/v1"])
def test_what_is_no_onnx_file_is_known_without_its_reader(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stages.ir.models.local_model.find_spec", lambda name: None)
    (tmp_path / "net.onnx").write_bytes(data)
    with pytest.raises(StageError, match=r"^net\.onnx is not an ONNX file"):
        sound_model(FileModel(file="net.onnx"), tmp_path)
