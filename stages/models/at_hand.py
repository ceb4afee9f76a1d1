"""What a model is, as far as that can be known at once: without TVM, a download or minutes of building."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stages.base import StageError
from stages.models.graphs import UnknownSignature, choose, graphs
from stages.models.resolve import file_at_hand
from stages.models.spec import FileModel, ModelSource, UrlModel
from stages.models.tflite_reader import ModelInfo, read

IMPORTED = "model.tflite"  # in the artifact of import


def model_at_hand(model: ModelSource, root: Path, made: Mapping[str, Path]) -> ModelInfo | None:
    """The imported graph when import's artifact is among those `made`, else that of the file; None when there is none.

    A file that import will refuse is None as well, since import says more about it, but for an unknown signature.
    Shapes that the file leaves out are only known once it is imported.
    """
    if "import" in made:
        return read((made["import"] / IMPORTED).read_bytes())
    path = file_at_hand(model, root)
    if path is None or not isinstance(model, FileModel | UrlModel):
        return None
    name = model.file if isinstance(model, FileModel) else model.url
    try:
        data = path.read_bytes()
        chosen = choose(graphs(data, name), model.signature, name)
        return read(data, name, chosen.subgraph if chosen is not None else 0)
    except UnknownSignature:
        raise
    except (OSError, StageError):
        return None
