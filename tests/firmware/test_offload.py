"""Networks on a board with an accelerator: what it computes, and what lies in its memory, against LiteRT."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.models.spec import ZooModel
from stages.targets.attached import Dma, Engine
from stages.targets.memory import Memory
from stages.targets.spec import Target
from tests.support.emitted import run_emitted, target_named
from tests.support.stages_run import run_stages

DMA = Dma(base=0x0020_4000, bytes_per_cycle=8, fixed_cycles=30, run_cycles=1, queue=4)
L1 = {"origin": 0x20000000, "holds": ("arena",)}


def with_toy(l1: int, core: str = "rv32-rvp", dma: Dma | None = DMA, **parameters: int) -> Target:
    """A core with the toy and so many bytes for it; without DMA the core copies."""
    target = target_named(core)
    assert target.memory is not None
    regions = {name: region.model_dump() for name, region in target.memory.regions.items()}
    regions["ram"] |= {"speed": 1}
    memory = Memory.model_validate({**regions, "l1": {**L1, "length": l1}, "stack": target.memory.stack})
    engine = Engine(kind="toy", memory="l1", parameters=parameters, bytes=l1, dma=dma)
    modules = {"accelerators/toy": "tests.support.toy"}
    return target.model_copy(update={"memory": memory, "accelerator": engine, "modules": modules})


def plan_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "tensorize/plan.json").read_text())
    return found


@pytest.mark.parametrize(("l1", "dma"), [(128 << 10, DMA), (12 << 10, DMA), (5 << 10, None)])
def test_keyword_spotting_is_exact_however_small_the_memory_is(tmp_path: Path, l1: int, dma: Dma | None) -> None:
    if shutil.which("riscv64-unknown-elf-gcc") is None:
        pytest.skip("riscv64-unknown-elf-gcc is not installed")
    target = with_toy(l1, dma=dma)
    model = ZooModel(zoo="ds_cnn")
    artifacts = run_stages(model, target, tmp_path)
    kernels = [layer["kernel"] for layer in plan_of(tmp_path)["layers"]]
    assert kernels.count("toy") >= 9, kernels
    assert not [layer["op"] for layer in plan_of(tmp_path)["layers"] if layer["op"] in ("layout", "pad")]
    inputs = [np.random.default_rng(seed).integers(-128, 128, (1, 49, 10, 1)).astype(np.int8) for seed in range(2)]
    found = run_emitted(artifacts["emit"], target, [[x] for x in inputs])
    plain = run_stages(model, target_named("rv32-rvp"), tmp_path / "plain")
    expected = run_emitted(plain["emit"], target_named("rv32-rvp"), [[x] for x in inputs])
    for one, other in zip(found, expected, strict=True):
        assert all(np.array_equal(one.traces[name], other.traces[name]) for name in other.traces)
        assert all(np.array_equal(a, b) for a, b in zip(one.outputs, other.outputs, strict=True))
