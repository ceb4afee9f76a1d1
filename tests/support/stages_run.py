"""Runs stages one after the other without the artifact store: what tests of later stages start from."""

import json
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.plugins.registry import default_registry
from stages.backends.targets.spec import Target
from stages.base import Job
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import FileModel
from tests.support.emitted import ROOT, Inference, run_emitted, target_named


def run_stages(
    model: ModelSource,
    target: Target,
    folder: Path,
    *,
    until: str = "emit",
    configs: Mapping[str, Mapping[str, Any]] | None = None,
    without: Container[str] = (),
    edit: Mapping[str, Callable[[Path], object]] | None = None,
) -> dict[str, Path]:
    """Artifact folders by stage kind, made under `folder`. `configs` are the stages' options as recipes write them.

    Stages `without` are left out; `edit` changes the artifacts of stages for those that follow.
    """
    done: dict[str, Path] = {}
    registry = default_registry()
    for stage in map(registry.__getitem__, registry.named):
        if stage.kind in without:
            continue
        config = stage.config.model_validate((configs or {}).get(stage.kind, {}))
        out = folder / stage.kind
        out.mkdir(parents=True)
        stage.run(
            Job(
                config=config,
                model=model,
                target=target,
                inputs={kind: done[kind] for kind in (*stage.consumes, *stage.may_consume) if kind in done},
                out=out,
                files=stage.inputs(config, model, target).files(ROOT),
            )
        )
        if edit and stage.kind in edit:
            edit[stage.kind](out)
        done[stage.kind] = out
        if stage.kind == until:
            break
    return done


def verified(
    model: ModelSource | bytes, target: str, folder: Path, configs: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """What verify says of a model, or of the bytes of a .tflite file; artifacts are in `folder`/run."""
    if isinstance(model, bytes):
        (folder / "model.tflite").write_bytes(model)
        model = FileModel(file=str(folder / "model.tflite"))
    made = run_stages(model, target_named(target), folder / "run", until="verify", configs=configs)
    found: dict[str, Any] = json.loads((made["verify"] / "verify.json").read_text())
    return found


def run_tflite(
    tflite: bytes | Path,
    inferences: list[list[np.ndarray]],
    folder: Path,
    *,
    target: str = "host",
    configs: Mapping[str, Mapping[str, Any]] | None = None,
    flags: Sequence[str] = ("-O1",),
) -> list[Inference]:
    """A TFLite model through import, layout, quantize, tensorize and emit, then built and run on `target`."""
    path = tflite if isinstance(tflite, Path) else folder / "model.tflite"
    if isinstance(tflite, bytes):
        path.write_bytes(tflite)
    chosen = target_named(target)
    artifacts = run_stages(FileModel(file=str(path)), chosen, folder / "artifacts", configs=configs)
    return run_emitted(artifacts["emit"], chosen, inferences, flags=flags)
