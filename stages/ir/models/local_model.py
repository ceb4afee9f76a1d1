"""What a model is, as far as that can be known at once: without TVM, a download or minutes of building."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from stages.ir.models.graphs import UnknownSignature, choose, graphs
from stages.ir.models.other_files import check_onnx
from stages.ir.models.resolve import local_file
from stages.ir.models.spec import FileModel, ModelSource, UrlModel, is_onnx
from stages.ir.models.tflite_reader import ModelInfo, read
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError

IMPORTED = "model.tflite"  # in the artifact of import


def local_model(model: ModelSource, root: Path, made: Mapping[str, Path]) -> ModelInfo | None:
    """The imported graph when import's artifact is among those `made`, else that of the file; None when there is none.

    A file that import will refuse is None as well, since import says more about it, but for an unknown signature.
    Shapes that the file leaves out are only known once it is imported.
    """
    if "import" in made:
        return read((made["import"] / IMPORTED).read_bytes())
    try:
        return sound_model(model, root)
    except UnknownSignature:
        raise
    except StageError:
        return None


def sound_model(model: ModelSource, root: Path) -> ModelInfo | None:
    """The graph of a TFLite file that is at hand; None for another model, for a file that cannot be read, and for a
    download that is another than the recipe's, which comes again.

    Raises StageError, as import does, for a file that is not sound, an unknown signature, and what is no ONNX file.
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
    """Those of the model's file, None where there is none that can be read, or a download that is another."""
    path = local_file(model, root)
    if path is None:
        return None
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return None if isinstance(model, UrlModel) and sha256(data).hexdigest() != model.sha256 else data


def _check_onnx(data: bytes, name: str) -> None:
    """Raises StageError for another file, and for what ONNX' own reader, where it is installed, does not read."""
    check_onnx(data, name)
    if find_spec("onnx") is not None:
        from stages.ir.models.onnx_parse import parsed

        parsed(data, name)
