"""What devices beside the core did: from the log, and from a firmware that was run with and without traces."""

import json
from pathlib import Path

import pytest

from stages.ir.models.spec import OpModel
from stages.simulate.devices import device_times, entries
from stages.simulate.firmware import FirmwareRun, run_firmware
from tests.firmware.test_offload import with_toy
from tests.support.stages_run import run_stages

LOG = """\
core 0 100 100 0 layer
dma 0 90 130 64 transfer 0
wait-dma 0 120 131 0 wait
core -1 150 150 0 layer
core 1 150 150 0 layer
ne16 1 151 191 900 job 0
dma 1 140 180 64 transfer 1
core -1 200 200 0 layer
core 0 200 200 0 layer
ne16 0 192 205 10 job 1
core -1 210 210 0 layer
"""


def test_busy_cycles_of_units_in_layers_and_inferences() -> None:
    first, second = device_times(entries(LOG), 2)
    assert first == {
        "dma": {"total": 70, "layers": [40, 30]},
        "ne16": {"total": 48, "layers": [0, 48]},
        "waiting": {"total": 11, "layers": [11, 0]},
    }
    assert second["ne16"] == {"total": 5, "layers": [5, 0]}


def test_traces_give_devices_no_time(tmp_path: Path) -> None:
    """The core copies every layer's output to the host, and the DMA is not ahead by that.

    Spike's counter lags by some instructions where no one has just read it: hence a little more or less of waiting.
    """
    target = with_toy(2 << 10)
    model = OpModel(op="conv2d", shape=(12, 12, 16), out_channels=16, kernel=(1, 1))
    made = run_stages(model, target, tmp_path, until="compile")
    layers = len(json.loads((made["emit"] / "model.json").read_text())["layers"])

    def ran(trace: bool) -> FirmwareRun:
        return run_firmware(
            made["compile"] / "firmware.elf", target, [bytes(2304)] * 2, layers=layers, output_bytes=2304, trace=trace
        )

    plain, traced = ran(False), ran(True)
    assert traced.trace and not plain.trace
    assert traced.totals == pytest.approx(plain.totals, rel=1e-3)
    times, others = (device_times(entries(run.devices), layers) for run in (plain, traced))
    for units, other, total in zip(times, others, plain.totals, strict=True):
        assert 0 < units["dma"]["total"] == sum(units["dma"]["layers"]) < total
        assert units["dma"] == other["dma"]
        assert 0 < units["waiting"]["total"] == pytest.approx(other["waiting"]["total"], abs=20)
