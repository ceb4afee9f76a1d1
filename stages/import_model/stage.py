"""Stage import: read and check the TFLite or ONNX file, and build the Relax module.

Artifact:

- model.tflite: the file unchanged, or normalized (stages.import_model.normalize), or converted from ONNX
  (stages.import_model.onnx); after the stage ptq, its quantized file
- model.onnx and onnx.json, for an ONNX model: the file, and its operators and tensors in model.tflite
  (stages.ir.models.onnx_names); in a chain <number of the part>.onnx
- module.json: the Relax module (stages.ir.relax_module)
- tensors.json: tensors and operators (stages.import_model.describe)
- import.json: {name, sha256 and bytes of the original file, operators, macs, signature, warnings}; sample_rate of
  input 0, for a chain with a front end
- window.tflite: for an incremental network (stages.import_model.incremental) the same with the network over the whole
  window, and window_onnx.json as onnx.json; import.json then has incremental: {frames, window}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, StageConfig, StageError, Tool, error_at
from stages.import_model.model_files import model_bytes, model_files, model_inputs, model_name
from stages.ir.model_info import ModelInfo
from stages.ir.models.chain.spec import ChainModel
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import FileModel, Incremental, NetworkSource, OpModel, UrlModel, is_onnx
from stages.ir.operators.declaration import NARROW
from stages.support.messages import escape

if TYPE_CHECKING:
    from stages.import_model.chain import Joined
    from stages.import_model.normalize import Normalized


MODEL, TENSORS, SUMMARY = "model.tflite", "tensors.json", "import.json"
WINDOW = "window.tflite"


class ImportConfig(StageConfig):
    """Options of import: none. The recipe's `model:` selects the model."""


class ImportStage(Stage[ImportConfig]):
    """The stage: recipe's model to a Relax module with one private function per operator."""

    kind: ClassVar[str] = "import"
    exclusive = True
    config: ClassVar[type[StageConfig]] = ImportConfig
    may_consume = ("ptq",)

    def inputs(self, config: ImportConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return the model, TVM, its flatbuffer reader, and LiteRT with the TFLite schema."""
        tools = (
            Tool("tvm", package="apache-tvm"),
            Tool("tflite", package="tflite"),
            Tool("litert", package="ai-edge-litert"),
        )
        return ActionInputs(
            tools=tools, sources=("stages/import_model/**/*.py", "stages/ir/models/chain/frontends/*.py")
        ) | model_inputs(model)

    def preflight(
        self, config: ImportConfig, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Check a local model file: format, signature and, for ONNX, known operators."""
        if "import" not in artifacts and "ptq" not in artifacts:
            known_model(model, root)

    def run(self, job: Job[ImportConfig]) -> None:
        """Write the artifact. Raises StageError for a missing, corrupt or unsupported model."""
        # The recipe describes a model of one operator, so errors point to `model`.
        with error_at("model") if isinstance(job.model, OpModel) else nullcontext():
            self._import(job)

    def _import(self, job: Job[ImportConfig]) -> None:
        from stages.import_model.build import build_module
        from stages.import_model.describe import describe, dump, operator_options
        from stages.ir.models.complexity import macs
        from stages.ir.relax_module import save_module
        from stages.ir.samples.wav import model_rate

        name = model_name(job.model)
        source = str(getattr(job.model, "file", "") or getattr(job.model, "url", "")) or name
        quantized = "ptq" in job.inputs
        parts: tuple[Any, ...] = ()
        if isinstance(job.model, ChainModel) and not quantized:
            joined_model, windowed = _joined(job.model, job.files)
            parts = joined_model.parts
            data = joined_model.file.data
        else:
            assert not isinstance(job.model, ChainModel)
            data = (job.inputs["ptq"] / MODEL).read_bytes() if quantized else model_bytes(job.model, job.files)
            normalized_model = _network(job.model, data, escape.name(source, 200), quantized=quantized)
            windowed = _of_frames(getattr(job.model, "window", None), normalized_model, escape.name(source, 200))
        normalized_model = windowed.network
        if windowed.facts:
            (job.out / WINDOW).write_bytes(windowed.whole.data)
            _write_networks(job.out, "window", windowed.whole)
        info = normalized_model.info
        job.progress(f"import {name}: {len(info.operators)} operators")
        module = build_module(normalized_model.data, info)
        _check_litert(normalized_model, source)
        _write_networks(job.out, "model", normalized_model)
        (job.out / MODEL).write_bytes(normalized_model.data)
        save_module(module, job.out)
        (job.out / TENSORS).write_text(
            dump(describe(info, operator_options(normalized_model.data), normalized_model.rules))
        )
        notes = (*normalized_model.notes, *_narrow_warning(info))
        summary: dict[str, Any] = {
            "name": name,
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
            "operators": len(info.operators),
            "macs": macs(info),
            "signature": normalized_model.signature or None,
            "warnings": list(notes),
        }
        summary |= {"incremental": windowed.facts} if windowed.facts else {}
        summary |= {"parts": [asdict(part) for part in parts]} if parts else {}
        rate = model_rate(job.model)
        summary |= {"sample_rate": rate} if rate else {}
        (job.out / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n")
        job.log(f"{name}: {summary['operators']} operators, {summary['macs']:,} MACs, sha256 {summary['sha256']}")
        for note in notes:
            job.log(f"warning: {note}")


def known_model(model: ModelSource, root: Path) -> ModelInfo | None:
    """Return the checked contents of a local model file; None if it is not local.

    Raises StageError as `stages.ir.models.local_model.sound_model`, and for unknown operators of an ONNX file.
    """
    from stages.ir.models.local_model import local_bytes, sound_model

    info = sound_model(model, root)
    if is_onnx(model) and find_spec("onnx") is not None:
        assert isinstance(model, FileModel | UrlModel)
        data = local_bytes(model, root)
        # External constants may be gigabytes.
        if data is not None and len(model_files(model, root)) < 2:
            from stages.import_model.onnx.convert import check_known

            name = escape.name(model.source, 200)
            check_known(data, name, model.shapes or {}, model.constants, model.states)
    return info


@dataclass(frozen=True)
class _Windowed:
    """An incremental network: its file, and the file over the whole window.

    Also the entry `incremental` of import.json.
    """

    network: Normalized
    whole: Normalized
    facts: dict[str, int]


def _joined(chain: ChainModel, files: Mapping[str, Path]) -> tuple[Joined, _Windowed]:
    """Return the joined file of a chain.

    Raises StageError, as its networks' imports and for parts that do not fit.
    """
    from stages.import_model.chain import Network, joined

    names, windowed = {}, {}
    for at, part in chain.networks.items():
        prefix, name = f"{at}: ", model_name(part)
        own_files = {key.removeprefix(prefix): path for key, path in files.items() if key.startswith(prefix)}
        with _part_errors(at):
            network = _network(part, model_bytes(part, own_files), escape.name(name))
        frames = chain.frontend.frames if chain.frontend is not None and at == 1 else None
        with _part_errors(at), error_at("model", "incremental"):
            names[at], windowed[at] = name, _of_frames(part.window, network, escape.name(name), frames)
    new = joined(chain, [Network(at, names[at], part.network) for at, part in windowed.items()])
    all_facts = [part.facts for part in windowed.values() if part.facts]
    if not all_facts:
        return new, _Windowed(new.file, new.file, {})
    whole = joined(chain, [Network(at, names[at], part.whole) for at, part in windowed.items()])
    slowest = max(all_facts, key=lambda facts: facts["window"] / facts["frames"])
    return new, _Windowed(new.file, whole.file, slowest)


@contextmanager
def _part_errors(number: int) -> Iterator[None]:
    """Move `at` of a StageError from the recipe's `model` to a part of its chain."""
    try:
        yield
    except StageError as error:
        error.at = ("model", "chain", number, *error.at[1:])
        raise


def _network(model: NetworkSource, data: bytes, source: str, *, quantized: bool = False) -> Normalized:
    """Return a network as a normalized TFLite file.

    quantized: `data` is ptq's file, which has one graph.
    """
    from stages.import_model.normalize import Normalized, normalized
    from stages.ir.models.onnx_names import OnnxNetwork
    from stages.ir.models.tflite_reader import read

    if quantized or not is_onnx(model):
        return normalized(data, source, None if quantized else getattr(model, "signature", None))
    from stages.import_model.onnx import convert

    assert isinstance(model, FileModel | UrlModel)
    converted = convert(data, source, model.shapes or {}, model.layout or "nchw", model.constants, model.states)
    info = read(converted.data, source)
    network = OnnxNetwork("model.onnx", (0, len(info.operators)), info.inputs, info.outputs, converted.names)
    return Normalized(converted.data, info, "", converted.notes, converted.rules, onnx=((network, converted.original),))


def _write_networks(folder: Path, stem: str, model: Normalized) -> None:
    """Write the ONNX networks of the TFLite file `stem`."""
    from stages.ir.models.onnx_names import networks_to_json
    from stages.ir.reference.onnx_runtime import networks_file

    for network, original in model.onnx:
        (folder / network.file).write_bytes(original)
    if model.onnx:
        (folder / networks_file(stem)).write_text(networks_to_json([network for network, _ in model.onnx]))


def _of_frames(options: Incremental | None, network: Normalized, name: str, frames: int | None = None) -> _Windowed:
    """Return a network, rewritten as `incremental` of the recipe requires.

    frames  new frames per run, if the part before determines them
    """
    if options is None:
        return _Windowed(network, network, {})
    from stages.import_model.incremental import incremental
    from stages.ir.models.tflite_reader import read

    new = incremental(network.data, network.info, name, frames=options.frames or frames, axis=options.axis)
    if frames not in (None, new.frames):
        raise StageError(f"the front end computes {frames} frames per run, but {name} reads {new.frames}")
    notes = (*network.notes, *new.notes)
    whole = replace(network, data=new.whole, info=read(new.whole, name))
    return _Windowed(replace(network, data=new.data, info=new.info, notes=notes), whole, new.facts)


def _check_litert(normalized_model: Normalized, source: str) -> None:
    """Raise StageError if LiteRT, the reference, does not load the file.

    Networks from ONNX are left out.
    """
    from stages.ir.models.tflite_reader import read
    from stages.ir.reference.onnx_runtime import partitions_of
    from stages.ir.reference.partitions import partitions
    from stages.ir.reference.probe import check_loads

    networks = partitions_of([network for network, _ in normalized_model.onnx], normalized_model.info)
    for partition in partitions(normalized_model.data, normalized_model.info, networks):
        if partition.model:
            is_whole = partition.model is normalized_model.data
            check_loads(partition.model, normalized_model.info if is_whole else read(partition.model, source), source)


def _narrow_warning(info: ModelInfo) -> list[str]:
    """Return a warning about constants with fewer than 8 bits per element, if there are any."""
    constants = [tensor for tensor in info.tensors if tensor.dtype in NARROW and tensor.data is not None]
    if not constants:
        return []
    types, count = ", ".join(sorted({tensor.dtype for tensor in constants})), sum(tensor.bytes for tensor in constants)
    storage = "one byte per element (unless tensorize's narrow_weights is set), a float, or an engine's own format"
    return [f"{len(constants)} x {types} constants, {count:,} bytes in the file: the firmware stores {storage}"]


STAGE = ImportStage()
