"""A recipe's model as far as it is available without TVM, a download or a build."""

from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from stages.ir.model_info import ModelInfo
from stages.ir.models.graphs import UnknownSignature, choose, graphs
from stages.ir.models.other_files import check_onnx
from stages.ir.models.resolve import local_file
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import FileModel, UrlModel, is_onnx
from stages.ir.models.tflite_reader import read
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError

IMPORTED = "model.tflite"  # in the artifact of import


def local_model(model: ModelSource, root: Path, artifacts: Mapping[str, Path]) -> ModelInfo | None:
    """Return the graph of import's artifact (in `made`), else of the local file, else None.

    A file that import will refuse gives None, because import reports more; except for an unknown signature. Shapes that
    the file leaves open, and an incremental network, are only known after import.
    """
    if "import" in artifacts:
        return read((artifacts["import"] / IMPORTED).read_bytes())
    if getattr(model, "window", None) is not None:
        return None
    try:
        return sound_model(model, root)
    except UnknownSignature:
        raise
    except StageError:
        return None


def sound_model(model: ModelSource, root: Path) -> ModelInfo | None:
    """Return the graph of a local TFLite file.

    None for other models, for an unreadable file, and for a cached download with another digest, which is downloaded
    again. Raises StageError, as import does, for an invalid file, an unknown signature, and a file that is not ONNX.
    """
    data = local_bytes(model, root)
    if data is None or not isinstance(model, FileModel | UrlModel):
        return None
    name = escape.name(model.source, 200)
    if is_onnx(model):
        _check_onnx(data, name)
        return None
    chosen = choose(graphs(data, name), model.signature, name)
    return read(data, name, chosen.subgraph if chosen is not None else 0)


def local_bytes(model: ModelSource, root: Path) -> bytes | None:
    """Return the content of the model's local file.

    None if it cannot be read, or if a cached download has another digest.
    """
    path = local_file(model, root)
    if path is None:
        return None
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return None if isinstance(model, UrlModel) and sha256(data).hexdigest() != model.sha256 else data


def _check_onnx(data: bytes, name: str) -> None:
    """Raise StageError for other files, and for what an installed ONNX package cannot read."""
    check_onnx(data, name)
    if find_spec("onnx") is not None:
        from stages.ir.models.onnx_parse import parsed

        parsed(data, name)
