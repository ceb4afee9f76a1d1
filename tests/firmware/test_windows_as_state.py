"""Sliding windows that stay in the state: as LiteRT over sequences, with resets, for random streaming networks."""

from pathlib import Path

import numpy as np
import pytest

from stages.ir.graph import Graph
from stages.ir.models.spec import FileModel
from stages.ir.models.tflite_reader import read
from stages.ir.reference.interpreter import random_inputs
from tests.firmware.test_state import litert
from tests.support.emitted import run_emitted, target_named
from tests.support.stages_run import run_stages
from tests.support.variables import Windows

STEPS = 6


@pytest.mark.parametrize("seed", [0, 2, 3, 5, 8, 10, 13])
def test_random_windows_are_litert_s(tmp_path: Path, seed: int) -> None:
    windows = Windows.drawn(seed)
    data = windows.build()
    (tmp_path / "model.tflite").write_bytes(data)
    target = target_named("host")
    configs = {"emit": {"arena": "caller", "prefix": "net"} if seed % 2 else {}}
    artifacts = run_stages(FileModel(file=str(tmp_path / "model.tflite")), target, tmp_path / "run", configs=configs)
    info = read((artifacts["import"] / "model.tflite").read_bytes())
    inputs = [random_inputs(info, seed) for seed in range(2 * STEPS)]
    inferences = run_emitted(artifacts["emit"], target, inputs, resets=(STEPS,))
    for step, inference in enumerate(inferences):
        if step % STEPS == 0:
            interpreter = litert(data)
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], inputs[step][0])
        interpreter.invoke()
        for ours, detail in zip(inference.outputs, interpreter.get_output_details(), strict=True):
            np.testing.assert_array_equal(ours, interpreter.get_tensor(detail["index"]), f"step {step}, {windows}")
    kinds = [layer.kind for layer in Graph.load(artifacts["tensorize"], constants=False).layers]
    assert kinds.count("slide") == (2 if windows.stays_in_place else 0), windows
