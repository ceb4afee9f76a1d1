"""The import stage: finds the TFLite or ONNX file, checks it, and makes the Relax module.

Artifact: model.tflite (the bytes as they came, or normalized: stages.import_model.normalize; of an ONNX file what
stages.import_model.onnx makes, with model.onnx, the file itself, and onnx.json, stages.ir.models.onnx_names),
module.json (stages.ir.relax_module), tensors.json (stages.import_model.describe) and import.json {name, sha256 and
bytes of the file as it came, operators, macs, signature, warnings}. Where the stage ptq quantized the model, the file
is what that left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stages.base import Job, Stage, StageConfig, StageError, Tool, blaming
from stages.ir.models.spec import FileModel, UrlModel, is_onnx
from stages.ir.operators.declaration import NARROW
from stages.support.messages import escape

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.import_model.normalize import Normalized
    from stages.ir.models.spec import ModelSource
    from stages.ir.models.tflite_reader import ModelInfo

_BESIDE = "constants in "  # before the name of a file that an ONNX file has constants in
MODEL, TENSORS, SUMMARY = "model.tflite", "tensors.json", "import.json"


class ImportConfig(StageConfig):
    """No options: what to import is the recipe's `model:`."""


class ImportStage(Stage[ImportConfig]):
    """Recipe's model -> Relax module with one private function per operator."""

    kind: ClassVar[str] = "import"
    exclusive = True
    config: ClassVar[type[StageConfig]] = ImportConfig
    may_consume = ("ptq",)
    sources: ClassVar[tuple[str, ...]] = ("stages/import_model/**/*.py",)

    def tools(self, config: ImportConfig, target: Target) -> tuple[Tool, ...]:
        """TVM, the flatbuffer reader of its front end, and the TFLite schema that LiteRT ships."""
        return (
            Tool("tvm", package="apache-tvm"),
            Tool("tflite", package="tflite"),
            Tool("litert", package="ai-edge-litert"),
        )

    def model_tools(self, model: ModelSource) -> tuple[Tool, ...]:
        """ONNX' own reader for a file of its own."""
        return (Tool("onnx", package="onnx", group="onnx"),) if is_onnx(model) else ()

    def files(self, config: ImportConfig, model: ModelSource, root: Path) -> dict[str, Path]:
        """The model file, when the recipe names one, and those in which an ONNX file has its constants.

        Raises StageError for one that is larger than any TFLite file.
        """
        from stages.ir.models.onnx_external import external_files
        from stages.ir.models.resolve import check_size, external_file

        path = external_file(model, root)
        if path is None:
            return {}
        check_size(path)
        beside = external_files(path) if is_onnx(model) else {}
        return {"model": path} | {f"{_BESIDE}{name}": place for name, place in beside.items()}

    def model_entry(self, model: ModelSource) -> dict[str, Any]:
        """All of it but a file's folder: the same file elsewhere is the same model."""
        entry = model.model_dump(mode="json")
        for key in ("signature", "shapes", "layout"):
            if entry.get(key, "") is None:
                del entry[key]
        if "file" in entry:
            entry["file"] = Path(entry["file"]).name
        if "url" in entry:
            entry["url"] = getattr(model, "source", "")  # without a query, which may be a key
        return entry

    def model_code(self, model: ModelSource) -> dict[str, Path]:
        from stages.ir.models.spec import PluginModel
        from stages.support.system.loaded_code import package_files

        return package_files(model.place) if isinstance(model, PluginModel) else {}

    def preflight(
        self, config: ImportConfig, model: ModelSource, target: Target, root: Path, made: Mapping[str, Path]
    ) -> None:
        """A file at hand that is not sound, has not the signature that the recipe wants, or unknown ONNX operators."""
        if "import" not in made and "ptq" not in made:
            known_model(model, root)

    def run(self, job: Job[ImportConfig]) -> None:
        """Writes the artifact. Raises StageError for a missing, corrupt or unsupported model, or one LiteRT refuses."""
        from stages.ir.models.spec import OpModel

        # What is wrong with a model of one operator is wrong with what the recipe says of it.
        with blaming("model") if isinstance(job.model, OpModel) else nullcontext():
            self._import(job)

    def _import(self, job: Job[ImportConfig]) -> None:
        from stages.import_model.build import build_module
        from stages.import_model.describe import describe, dump, operator_options
        from stages.ir.models.complexity import macs
        from stages.ir.relax_module import save_module

        name = model_name(job.model)
        source = str(getattr(job.model, "file", "") or getattr(job.model, "url", "")) or name
        quantized = "ptq" in job.inputs
        data = (job.inputs["ptq"] / MODEL).read_bytes() if quantized else model_bytes(job)
        of_onnx = is_onnx(job.model) and not quantized
        made = (_of_onnx if of_onnx else _of_tflite)(job, data, escape.name(source, 200))
        info = made.info
        job.progress(f"import {name}: {len(info.operators)} operators")
        module = build_module(made.data, info)
        if not of_onnx:
            _check_litert(made, source)
        (job.out / MODEL).write_bytes(made.data)
        save_module(module, job.out)
        (job.out / TENSORS).write_text(dump(describe(info, operator_options(made.data), made.rules)))
        notes = (*made.notes, *_narrow(info))
        summary = {
            "name": name,
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
            "operators": len(info.operators),
            "macs": macs(info),
            "signature": made.signature or None,
            "warnings": list(notes),
        }
        (job.out / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n")
        job.log(f"{name}: {summary['operators']} operators, {summary['macs']:,} MACs, sha256 {summary['sha256']}")
        for note in notes:
            job.log(f"warning: {note}")


def known_model(model: ModelSource, root: Path) -> ModelInfo | None:
    """Return the graph as `local_model.sound_model` does. Unknown operators of an ONNX file raise StageError."""
    from stages.ir.models.local_model import local_bytes, sound_model

    info = sound_model(model, root)
    if is_onnx(model) and find_spec("onnx") is not None:
        assert isinstance(model, FileModel | UrlModel)
        data = local_bytes(model, root)
        # Constants in other files may be gigabytes.
        if data is not None and len(STAGE.files(ImportConfig(), model, root)) < 2:
            from stages.import_model.onnx.convert import check_known

            check_known(data, escape.name(model.source, 200), model.shapes or {})
    return info


def _of_tflite(job: Job[ImportConfig], data: bytes, source: str) -> Normalized:
    from stages.import_model.normalize import normalized

    # What ptq left has one graph.
    return normalized(data, source, None if "ptq" in job.inputs else getattr(job.model, "signature", None))


def _of_onnx(job: Job[ImportConfig], data: bytes, source: str) -> Normalized:
    """The file of the same network, with what its oracle needs beside it."""
    from stages.import_model.normalize import Normalized
    from stages.import_model.onnx import convert
    from stages.ir.models.onnx_names import dumped
    from stages.ir.models.tflite_reader import read
    from stages.ir.reference.onnx_runtime import NAMES, ONNX_FILE

    assert isinstance(job.model, FileModel | UrlModel)
    made = convert(data, source, job.model.shapes or {}, job.model.layout or "nchw")
    (job.out / ONNX_FILE).write_bytes(made.original)
    (job.out / NAMES).write_text(dumped(made.names))
    return Normalized(made.data, read(made.data, source), "", (), made.rules)


def _check_litert(made: Normalized, source: str) -> None:
    """Raises StageError where LiteRT, whose results are to be met, does not load the file."""
    from stages.ir.models.tflite_reader import read
    from stages.ir.reference.partitions import partitions
    from stages.ir.reference.probe import check_loads

    for partition in partitions(made.data, made.info):
        if partition.model:
            info = made.info if partition.model is made.data else read(partition.model, source)
            check_loads(partition.model, info, source)


def _narrow(info: ModelInfo) -> list[str]:
    """What the user should know of constants with less than a byte for an element."""
    found = [tensor for tensor in info.tensors if tensor.dtype in NARROW and tensor.data is not None]
    if not found:
        return []
    types, count = ", ".join(sorted({tensor.dtype for tensor in found})), sum(tensor.bytes for tensor in found)
    each = "a whole byte for each element (without tensorize's narrow_weights), or a float; for engines what they read"
    return [f"{len(found)} x {types} constants, {count:,} bytes in the file: the firmware stores {each}"]


def model_name(model: ModelSource) -> str:
    """How reports name the model: the file's name without its ending, the zoo's entry, or the operator."""
    for field in ("zoo", "op"):
        if hasattr(model, field):
            return str(getattr(model, field))
    path = str(getattr(model, "file", "") or getattr(model, "url", "")).split("?")[0]
    return Path(path).name.removesuffix(".tflite").removesuffix(".onnx")


def model_bytes(job: Job[Any]) -> bytes:
    """The file that the recipe's model names, or is built as. Raises StageError."""
    path = job.files.get("model")
    if path is None:
        from stages.ir.models.resolve import resolve

        return resolve(job.model)
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise StageError(f"cannot read the model file {path}: {reason}") from None
    beside = {name.removeprefix(_BESIDE): place for name, place in job.files.items() if name.startswith(_BESIDE)}
    if not beside:
        return data
    from stages.ir.models.onnx_external import whole

    return whole(data, beside, escape.name(path.name))


STAGE = ImportStage()
