"""Small float networks and data for the tests of quantization."""

from pathlib import Path
from typing import Any

import numpy as np

from stages.base import Job
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import FileModel
from stages.ptq.config import PtqConfig
from stages.ptq.stage import PtqStage
from tests.support.emitted import target_named


def small_network(seed: int = 0) -> bytes:
    """conv -> depthwise -> pool -> dense -> softmax on [1, 8, 8, 3]."""
    random = np.random.default_rng(seed)

    def drawn(*shape: int) -> Any:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 3), "float32")
    x = b.conv2d(x, drawn(8, 3, 3, 3), drawn(8), activation="relu", name="conv")
    x = b.depthwise_conv2d(x, drawn(1, 3, 3, 8), drawn(8), activation="relu6", name="depthwise")
    x = b.max_pool2d(x, (2, 2), name="pool")
    x = b.fully_connected(x, drawn(5, 128), drawn(5), name="dense")
    b.output(b.softmax(x))
    return b.build()


def images(count: int = 6, seed: int = 1) -> Any:
    """[count, 8, 8, 3] float32, 0 to 1."""
    return np.random.default_rng(seed).uniform(0, 1, (count, 8, 8, 3)).astype(np.float32)


def run_ptq(folder: Path, model: bytes, config: dict[str, Any]) -> Path:
    """The artifact that the stage makes of a model; names of files in `config` are relative to `folder`."""
    (folder / "net.tflite").write_bytes(model)
    source, stage = FileModel(file="net.tflite"), PtqStage()
    options = PtqConfig.model_validate({"mode": "calibrate", **config})
    target = target_named("host")
    stage.preflight(options, source, target, folder, {})
    out = folder / "out"
    out.mkdir(exist_ok=True)
    files = {name: folder / path for name, path in stage.inputs(options, source, target).files(folder).items()}
    stage.run(Job(config=options, model=source, target=target, inputs={}, out=out, files=files))
    return out
