"""From a recipe's `model:` entry to the bytes of a TFLite file."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from stages.base import StageError
from stages.models.spec import FileModel, ModelSource, OpModel, UrlModel, ZooModel

DOWNLOAD_TIMEOUT = 60.0  # seconds without a byte
LARGEST_DOWNLOAD = 2**31  # bytes; what a flatbuffer can hold


def external_file(source: ModelSource, root: Path) -> Path | None:
    """The file that a `file` model names, whether it exists or not; None for other kinds. Its digest is an input."""
    if not isinstance(source, FileModel):
        return None
    path = Path(source.file).expanduser()
    return path if path.is_absolute() else root / path


def default_cache() -> Path:
    """Where downloads are kept: FIRMLINE_CACHE, else firmline/ in the user's cache folder."""
    chosen = os.environ.get("FIRMLINE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "firmline"


def resolve(source: ModelSource, root: Path | None = None, cache_dir: Path | None = None) -> bytes:
    """The TFLite file's bytes.

    root: what relative files are relative to (the working directory if None). cache_dir: where downloads are kept
    (`default_cache()` if None). Raises StageError: no such file, no network, wrong sha256, no such zoo model, a
    contradictory operator. Does not check the bytes; `stages.models.tflite_reader.read` does.
    """
    if isinstance(source, FileModel):
        return _read_file(source, root or Path.cwd())
    if isinstance(source, UrlModel):
        return _download(source, (cache_dir or default_cache()) / "models")
    if isinstance(source, ZooModel):
        from stages.models import zoo

        return zoo.build(source.zoo, source.dtype, source.seed)
    assert isinstance(source, OpModel)
    from stages.models import operators

    return operators.build(source)


def _read_file(source: FileModel, root: Path) -> bytes:
    path = external_file(source, root)
    assert path is not None
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise StageError(f"model file {source.file} does not exist", hint=f"Looked for {path}") from None
    except OSError as error:
        raise StageError(f"cannot read model file {path}: {error.strerror or error}") from None


def _download(source: UrlModel, folder: Path) -> bytes:
    """The cached copy if its digest is right, else a fresh download, checked and then cached."""
    kept = folder / f"{source.sha256}.tflite"
    try:
        data = kept.read_bytes()
        if hashlib.sha256(data).hexdigest() == source.sha256:
            return data
    except OSError:
        pass
    data = _fetch(source.url)
    digest = hashlib.sha256(data).hexdigest()
    if digest != source.sha256:
        raise StageError(
            f"{source.url} has another sha256 than the recipe says ({len(data)} bytes)\n"
            f"  recipe:   {source.sha256}\n  download: {digest}",
            hint="If you trust the download, put its sha256 into the recipe.",
        )
    _keep(kept, data)
    return data


def _fetch(url: str) -> bytes:
    scheme = url.split(":", 1)[0].lower()
    if scheme not in ("http", "https", "file"):
        raise StageError(f"cannot download {url}: only http, https and file addresses are supported")
    try:
        with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT) as response:
            data: bytes = response.read(LARGEST_DOWNLOAD + 1)
    except urllib.error.HTTPError as error:
        raise StageError(f"cannot download {url}: the server answers {error.code} {error.reason}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise StageError(
            f"cannot download {url}: {reason}",
            hint="Without a network, give the model as `file:` instead.",
        ) from None
    if len(data) > LARGEST_DOWNLOAD:
        raise StageError(f"{url} is larger than a TFLite file can be")
    return data


def _keep(path: Path, data: bytes) -> None:
    """Caches a download whole or not at all. A cache that cannot be written costs a download next time, no more."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(data)
        Path(file.name).replace(path)
    except OSError:
        return
