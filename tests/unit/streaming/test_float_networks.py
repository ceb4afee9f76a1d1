"""Random float networks on the host: by rows, without and with padded copies of images, all bytes are the same."""

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.ir.reference import Reference
from stages.lower.streaming.groups import GroupSearch
from stages.tensorize import float_schedule
from tests.support.emitted import run_emitted, target_named
from tests.support.row_networks import network
from tests.support.stages_run import run_stages
from tests.unit.streaming.test_drawn_networks import random_groups

COUNT = int(os.environ.get("STREAMING_NETWORKS", "3"))


def values(
    tflite: bytes, inferences: list[Any], folder: Path, streaming: bool | str, ports: Sequence[str] = ()
) -> tuple[dict[str, bytes], int]:
    """Build and run a model. Return the bytes of all tensors and outputs, and the number of layers that ran by rows.

    ports  `input` or `output`, which the application passes or receives by rows
    """
    target, options = target_named("host"), {"streaming": streaming}
    by_rows = {f"{port}_rows": True for port in ports}
    configs: dict[str, dict[str, Any]] = {
        "tensorize": {**options, **by_rows},
        "emit": {**options, **dict.fromkeys(ports, "rows")},
    }
    artifacts = run_stages(tflite, target, folder, configs=configs)
    plan = json.loads((artifacts["tensorize"] / "plan.json").read_text())
    results = {}
    for number, inference in enumerate(run_emitted(artifacts["emit"], target, inferences)):
        results |= {f"{number} {name}": bits(value) for name, value in inference.traces.items()}
        results |= {f"{number} output {i}": bits(value) for i, value in enumerate(inference.outputs)}
    return results, sum(len(group["layers"]) for group in plan.get("groups", ()))


def bits(array: np.ndarray[Any, Any]) -> bytes:
    """Return the bytes, with one NaN: compilers choose the sign."""
    return np.where(np.isnan(array), np.float32(np.nan), array).tobytes()


def unusual_inputs(info: Any, seed: int) -> list[Any]:
    """Return random floats among zeros of both signs, infinities, NaN and subnormal numbers."""
    rng = np.random.default_rng(seed)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-41], np.float32)
    arrays = []
    for tensor in (info.tensors[index] for index in info.inputs):
        array = rng.normal(0, 1, tensor.shape).astype(np.float32)
        places = rng.random(tensor.shape) < 0.05
        array[places] = rng.choice(special, int(places.sum()))
        arrays.append(array)
    return arrays


@pytest.mark.parametrize("number", range(COUNT))
def test_random_groups(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tflite, rng = network(number, "float32"), random.Random(number)
    info = Reference(tflite).info
    inferences = [unusual_inputs(info, 1), [np.abs(array) for array in unusual_inputs(info, 2)]]
    monkeypatch.setattr(GroupSearch, "best", lambda search, share, limit=None: random_groups(search, rng))
    whole, _ = values(tflite, inferences, tmp_path / "whole", False)
    by_rows, _ = values(tflite, inferences, tmp_path / "rows", "auto")
    assert by_rows == whole
    monkeypatch.setattr(float_schedule, "_is_skippable", lambda *_: False)
    assert values(tflite, inferences, tmp_path / "copies", False)[0] == whole


@pytest.mark.parametrize("ports", [["output"], ["input", "output"]])
def test_images_by_rows(ports: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tflite, rng = network(1, "float32", image=True), random.Random(1)
    inferences = [unusual_inputs(Reference(tflite).info, 1)]
    monkeypatch.setattr(GroupSearch, "best", lambda search, share, limit=None: random_groups(search, rng))
    whole, _ = values(tflite, inferences, tmp_path / "whole", False)
    by_rows, layers = values(tflite, inferences, tmp_path / "rows", "auto", ports)
    assert by_rows == whole and layers
