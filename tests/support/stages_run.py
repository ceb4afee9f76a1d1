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
from stages.ir.reference.interpreter import Reference, random_inputs
from tests.support.emitted import ROOT, Inference, run_emitted, target_named


def run_stages(
    model: ModelSource | bytes,
    target: Target | str,
    folder: Path,
    *,
    until: str = "emit",
    configs: Mapping[str, Mapping[str, Any]] | None = None,
    without: Container[str] = (),
    edit: Mapping[str, Callable[[Path], object]] | None = None,
) -> dict[str, Path]:
    """Artifact folders by stage kind, made under `folder`. `configs` are the stages' options as recipes write them.

    model    or the bytes of a .tflite file
    without  stages that are left out
    edit     changes the artifacts of stages for those that follow
    """
    if isinstance(model, bytes):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.tflite").write_bytes(model)
        model = FileModel(file=str(folder / "model.tflite"))
    target = target_named(target) if isinstance(target, str) else target
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
    made = run_stages(model, target, folder / "run", until="verify", configs=configs)
    found: dict[str, Any] = json.loads((made["verify"] / "verify.json").read_text())
    return found


def run_tflite(
    tflite: bytes,
    inferences: list[list[np.ndarray]],
    folder: Path,
    *,
    target: str = "host",
    configs: Mapping[str, Mapping[str, Any]] | None = None,
    flags: Sequence[str] = ("-O1",),
) -> list[Inference]:
    """A TFLite model through import, layout, quantize, tensorize and emit, then built and run on `target`."""
    artifacts = run_stages(tflite, target, folder / "artifacts", configs=configs)
    return run_emitted(artifacts["emit"], target_named(target), inferences, flags=flags)


def check_firmware(
    tflite: bytes, folder: Path, inferences: list[list[np.ndarray]] | None = None, *, within: float = 0.0, **how: Any
) -> None:
    """Firmware has LiteRT's outputs, floats `within` them; on two random inferences where none are given.

    how  target, configs and flags of `run_tflite`
    """
    reference = Reference(tflite)
    inferences = inferences or [random_inputs(reference.info, seed) for seed in (1, 2)]
    for inputs, inference in zip(inferences, run_tflite(tflite, inferences, folder, **how), strict=True):
        for output, expected in zip(inference.outputs, reference.run(inputs), strict=True):
            assert output.dtype == expected.dtype
            np.testing.assert_allclose(output, expected, rtol=within, atol=within)
