"""Read, download or build the TFLite file of a recipe's `model:` entry."""

import contextlib
import hashlib
from pathlib import Path

from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import FileModel, OpModel, PluginModel, UrlModel, ZooModel
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError, error_at
from stages.support.system.atomic_write import write_atomically
from stages.support.system.installation import default_cache
from stages.support.system.pathname import located

DOWNLOAD_TIMEOUT = 60.0  # seconds without a byte
LARGEST_FILE = 2**31  # bytes; what a flatbuffer can hold


def external_file(source: ModelSource, root: Path) -> Path | None:
    """Return the path of a `file` model, existing or not; None for other kinds.

    Its digest is part of the key.
    """
    if not isinstance(source, FileModel):
        return None
    return located(source.file, root)


def check_size(path: Path) -> None:
    """Raise StageError for a file above LARGEST_FILE. FlatBuffers have 32-bit offsets."""
    try:
        size = path.stat().st_size
    except OSError:  # reported when it is opened
        return
    if size > LARGEST_FILE:
        message = f"{escape.name(path.name)} has {size:,} bytes; a TFLite file has {LARGEST_FILE:,} at most"
        raise StageError(message, at=("model", "file"))


def local_file(source: ModelSource, root: Path) -> Path | None:
    """Return the path of a file or cached download, existing or not; None for other models."""
    if isinstance(source, UrlModel):
        return _cached(default_cache() / "models", source)
    return external_file(source, root)


def resolve(source: ModelSource, root: Path | None = None, cache_dir: Path | None = None) -> bytes:
    """Return the bytes of the TFLite file.

    root       base of relative files (None: the working directory)
    cache_dir  folder of downloads (None: `default_cache()`)

    Raises StageError: missing file, no network, wrong sha256, unknown zoo model, contradictory operator.
    `stages.ir.models.tflite_reader.read` checks the bytes.
    """
    if isinstance(source, FileModel):
        with error_at("model", "file"):
            return _read_file(source, root or Path.cwd())
    if isinstance(source, UrlModel):
        with error_at("model", "url"):
            return _download(source, (cache_dir or default_cache()) / "models")
    if isinstance(source, ZooModel):
        from stages.ir.models import zoo

        return zoo.build(source.zoo, source.dtype, source.seed, source.weights.bits if source.weights else 8)
    if isinstance(source, PluginModel):
        return _built(source)
    assert isinstance(source, OpModel)
    from stages.ir.models import operators

    return operators.build(source)


def _built(source: PluginModel) -> bytes:
    """Return the file that a plug-in's module builds."""
    from importlib import import_module

    data = import_module(source.module).build(source.dtype, source.seed)
    if not isinstance(data, bytes):
        message = f"build of the plug-in '{source.zoo}' gives {type(data).__name__}, not the bytes of a TFLite file"
        raise StageError(message, at=("model", "zoo"))
    return data


def _read_file(source: FileModel, root: Path) -> bytes:
    path = external_file(source, root)
    assert path is not None
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise StageError(
            f"model file {escape.name(source.file, 200)} does not exist",
            hint=f"Looked for {escape.name(str(path), 200)}",
        ) from None
    except OSError as error:
        raise StageError(f"cannot read model file {escape.name(str(path), 200)}: {error.strerror or error}") from None


def _download(source: UrlModel, folder: Path) -> bytes:
    """Return the cached download if its digest is right, else download, check and cache.

    Raises StageError.
    """
    cached = _cached(folder, source)
    try:
        data = cached.read_bytes()
        if hashlib.sha256(data).hexdigest() == source.sha256:
            return data
    except OSError:
        pass
    data = _fetch(source.url, source.source)
    digest = hashlib.sha256(data).hexdigest()
    if digest != source.sha256:
        raise StageError(
            f"{source.source} has another sha256 than the recipe says ({len(data)} bytes)\n"
            f"  recipe:   {source.sha256}\n  download: {digest}",
            hint="If you trust the download, put its sha256 into the recipe.",
            at=("model", "sha256"),
        )
    # Without a cache the next run downloads again.
    with contextlib.suppress(OSError):
        write_atomically(cached, data)
    return data


def _cached(folder: Path, source: UrlModel) -> Path:
    return folder / f"{source.sha256}.tflite"


def _fetch(url: str, shown: str) -> bytes:
    """Return the bytes at a URL; messages call it `shown`. Raises StageError."""
    # Imported here: every run imports this module, and few download.
    import http.client
    import urllib.error
    import urllib.request

    scheme = url.split(":", 1)[0].lower()
    if scheme not in ("http", "https", "file"):
        raise StageError(f"cannot download {shown}: only http, https and file addresses are supported")
    try:
        with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT) as response:
            data: bytes = response.read(LARGEST_FILE + 1)
    except urllib.error.HTTPError as error:
        raise StageError(f"cannot download {shown}: the server answers {error.code} {error.reason}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        # Errors about the URL contain it, with a query that may be a secret.
        wrong = isinstance(error, ValueError | http.client.InvalidURL)
        reason = "is no address" if wrong else getattr(error, "reason", None) or error
        raise StageError(
            f"cannot download {shown}: {reason}", hint="Without a network, give the model as `file:` instead."
        ) from None
    if len(data) > LARGEST_FILE:
        raise StageError(f"{shown} is larger than a TFLite file can be")
    return data
