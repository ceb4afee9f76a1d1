"""The files of a recipe's model: content, and action inputs of stages that read them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.base import ActionInputs, StageError, Tool
from stages.ir.models.chain.spec import ChainModel
from stages.ir.models.sources import ModelSource, networks_of
from stages.ir.models.spec import ONNX_OPTIONS, NetworkSource, PluginModel, is_onnx
from stages.support.messages import escape
from stages.support.system.loaded_code import package_files

_EXTERNAL = "constants in "  # prefix of files with external constants of an ONNX file


def model_inputs(model: ModelSource) -> ActionInputs:
    """Return the action inputs of a stage that reads the recipe's model.

    They are the model's files, code and entry, and the reader of ONNX files.
    """
    networks = networks_of(model)
    return ActionInputs(
        tools=(Tool("onnx", package="onnx", group="onnx"),) if any(map(is_onnx, networks)) else (),
        files=lambda root: model_files(model, root),
        code={
            name: path
            for part in networks
            if isinstance(part, PluginModel)
            for name, path in package_files(part.place).items()
        },
        model_entry=_key_entry(model),
    )


def model_files(model: ModelSource, root: Path) -> dict[str, Path]:
    """Return the recipe's model files, and the files with external constants of an ONNX file.

    Raises StageError for a file larger than any TFLite file can be.
    """
    if isinstance(model, ChainModel):
        parts = model.networks.items()
        return {f"{at}: {name}": path for at, part in parts for name, path in model_files(part, root).items()}
    from stages.ir.models.onnx_external import external_files
    from stages.ir.models.resolve import check_size, external_file

    path = external_file(model, root)
    if path is None:
        return {}
    check_size(path)
    external = external_files(path) if is_onnx(model) else {}
    return {"model": path} | {f"{_EXTERNAL}{name}": file for name, file in external.items()}


def _key_entry(model: ModelSource) -> dict[str, Any]:
    """Return the model entry for the action key: its options, without the folder of a file."""
    if isinstance(model, ChainModel):
        networks = model.networks
        return {
            "chain": [
                _key_entry(part) if at in networks else part.model_dump(mode="json")
                for at, part in enumerate(model.chain)
            ]
        }
    entry = model.model_dump(mode="json")
    for key in ("signature", "incremental", *ONNX_OPTIONS):
        if entry.get(key, "") is None:
            del entry[key]
    if "file" in entry:
        entry["file"] = Path(entry["file"]).name
    if "url" in entry:
        entry["url"] = getattr(model, "source", "")  # without a query, which may be a key
    return entry


def model_name(model: ModelSource) -> str:
    """Return the model's name for reports: zoo entry, operator, or file name without suffix."""
    for field in ("zoo", "op"):
        if hasattr(model, field):
            return str(getattr(model, field))
    if isinstance(model, ChainModel):
        networks = [model_name(part) for part in model.networks.values()]
        return "+".join(networks) or model.chain[0].frontend.kind
    path = str(getattr(model, "file", "") or getattr(model, "url", "")).split("?")[0]
    return Path(path).name.removesuffix(".tflite").removesuffix(".onnx")


def model_bytes(model: NetworkSource, files: Mapping[str, Path]) -> bytes:
    """Return the file of a network, built if necessary; `files` as in `model_files`.

    Raises StageError.
    """
    path = files.get("model")
    if path is None:
        from stages.ir.models.resolve import resolve

        return resolve(model)
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise StageError(f"cannot read the model file {path}: {reason}") from None
    external = {name.removeprefix(_EXTERNAL): place for name, place in files.items() if name.startswith(_EXTERNAL)}
    if not external:
        return data
    from stages.ir.models.onnx_external import whole

    return whole(data, external, escape.name(path.name))
