"""Networks on a board with an accelerator: what it computes, and what lies in its memory, against LiteRT."""

import json
from pathlib import Path

import pytest

from stages.backends.targets.attached import Dma, Engine
from stages.backends.targets.memory import Memory
from stages.backends.targets.spec import Target
from stages.ir.models.spec import ZooModel
from tests.support.emitted import target_named
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


@pytest.mark.parametrize(("l1", "dma"), [(128 << 10, DMA), (12 << 10, DMA), (5 << 10, None)])
def test_keyword_spotting_is_exact_however_small_the_memory_is(tmp_path: Path, l1: int, dma: Dma | None) -> None:
    configs = {"simulate": {"inputs": {"random": 1, "extremes": False}}}
    made = run_stages(ZooModel(zoo="ds_cnn"), with_toy(l1, dma=dma), tmp_path, until="verify", configs=configs)
    layers = json.loads((made["tensorize"] / "plan.json").read_text())["layers"]
    assert [layer["kernel"] for layer in layers].count("toy") >= 9
    assert not [layer["op"] for layer in layers if layer["op"] in ("layout", "pad")]
    found = json.loads((made["verify"] / "verify.json").read_text())
    assert found["mismatches"] == 0 and found["layers_checked"] >= 9, found["first_mismatch"]
