"""From a recipe's model entry to bytes; what is missing or wrong is said in a few lines."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stages.base import StageError
from stages.ir.models import zoo
from stages.ir.models.local_model import local_model, sound_model
from stages.ir.models.resolve import LARGEST_FILE, check_size, external_file, resolve
from stages.ir.models.spec import FileModel, UrlModel, ZooModel

CONTENT = b"a model"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A web server on this machine that has one file, net.tflite in this folder: the file's address."""
    folder.mkdir()
    (folder / "net.tflite").write_bytes(CONTENT)
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    threading.Thread(target=http.serve_forever).start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/net.tflite"
    finally:
        http.shutdown()
        http.server_close()


def test_file_is_relative_to_the_root(tmp_path: Path) -> None:
    (tmp_path / "a.tflite").write_bytes(CONTENT)
    assert resolve(FileModel(file="a.tflite"), tmp_path) == CONTENT
    assert external_file(FileModel(file="a.tflite"), tmp_path) == tmp_path / "a.tflite"
    assert external_file(FileModel(file="/b/c.tflite"), tmp_path) == Path("/b/c.tflite")
    assert external_file(ZooModel(zoo="ds_cnn"), tmp_path) is None


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"a\.tflite does not exist") as caught:
        resolve(FileModel(file="a.tflite"), tmp_path)
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(StageError, match="cannot read"):
        resolve(FileModel(file="."), tmp_path)


def test_download_is_checked_and_kept(tmp_path: Path) -> None:
    cache, files = tmp_path / "cache", tmp_path / "net"
    with server(files) as url:
        model = UrlModel(url=url, sha256=DIGEST)
        assert resolve(model, cache_dir=cache) == CONTENT
        # Damaged in the cache, it is downloaded again.
        (kept,) = (path for path in cache.rglob("*") if path.is_file())
        kept.write_bytes(b"half")
        assert resolve(model, cache_dir=cache) == CONTENT == kept.read_bytes()
        # Gone from the net, but in the cache.
        (files / "net.tflite").unlink()
        assert resolve(model, cache_dir=cache) == CONTENT


def test_wrong_sha256_shows_both_and_keeps_nothing(tmp_path: Path) -> None:
    with server(tmp_path / "net") as url, pytest.raises(StageError) as caught:
        resolve(UrlModel(url=url, sha256="0" * 64), cache_dir=tmp_path / "cache")
    assert "0" * 64 in str(caught.value) and DIGEST in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_no_network_and_server_errors(tmp_path: Path) -> None:
    with server(tmp_path / "net") as url, pytest.raises(StageError, match="answers 404"):
        resolve(UrlModel(url=f"{url}.zip", sha256=DIGEST), cache_dir=tmp_path)
    with pytest.raises(StageError, match=r"cannot download .*refused"):  # nobody listens there any more
        resolve(UrlModel(url=url, sha256=DIGEST), cache_dir=tmp_path)
    with pytest.raises(StageError, match="only http"):
        resolve(UrlModel(url="ftp://host/x", sha256=DIGEST), cache_dir=tmp_path)


def test_file_that_is_larger_than_any_model_is_refused_unread(tmp_path: Path) -> None:
    large = tmp_path / "large.tflite"
    with large.open("wb") as file:
        file.truncate(LARGEST_FILE)
    check_size(large)
    with large.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(StageError, match=r"large\.tflite has 2,147,483,649 bytes; a TFLite file has 2,147,483,648 at"):
        check_size(large)
    check_size(tmp_path / "none.tflite")


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
