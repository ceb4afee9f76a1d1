"""The simulate stage on a hand-written model: outputs against numpy, counts, and what a user sees when it fails."""

import json
from pathlib import Path

import numpy as np
import pytest

from stages.backends.targets.load import load_target
from stages.base import Job, StageError
from stages.compile.firmware import compile_firmware
from stages.simulate import STAGE, InputsConfig, SimulateConfig
from stages.simulate.firmware import run_firmware
from tests.support import tiny_model
from tests.support.tiny_model import SIZE, write_tiny_model


def firmware(folder: Path, target: str, fault: str = "") -> tuple[Path, dict]:
    """A compiled tiny model and its description."""
    model = write_tiny_model(folder / "emit" / "src", fault=fault)
    (folder / "emit" / "model.json").write_text(json.dumps(model))
    (folder / "compile").mkdir()
    compile_firmware(folder / "emit" / "src", model, load_target(target), folder / "compile")
    return folder / "compile" / "firmware.elf", model


def simulate(folder: Path, target: str, **options) -> Path:
    """Runs the stage on what `firmware` left; returns the artifact's folder."""
    out = folder / "simulate"
    out.mkdir()
    inputs = {kind: folder / kind for kind in ("emit", "compile")}
    STAGE.run(Job(SimulateConfig(**options), None, load_target(target), inputs, out))
    return out


def test_firmware_that_fits_the_board_but_not_the_machine_is_made_and_not_run(tmp_path):
    """The machine of the Cortex-M55 has 512 KB of ROM, the board more."""
    ballast = "static const int8_t ballast[600000] = {1}; model_arena[0] += ((const volatile int8_t *)ballast)[599999];"
    model = write_tiny_model(tmp_path / "emit" / "src", fault=ballast)
    (tmp_path / "emit" / "model.json").write_text(json.dumps(model))
    (tmp_path / "compile").mkdir()
    compile_firmware(tmp_path / "emit" / "src", model, load_target("alif-e7-hp"), tmp_path / "compile")
    assert (tmp_path / "compile" / "firmware.elf").exists()
    with pytest.raises(StageError) as raised:
        simulate(tmp_path, "alif-e7-hp")
    message = str(raised.value)
    assert message.startswith("tiny fits alif-e7-hp, but not mps3-an547, the simulated machine: rom needs 60")
    assert "but has 524,288" in message
    assert message.endswith("`doit run NAME:compile` builds the firmware for the board")
    assert len(message.splitlines()) <= 5


@pytest.mark.parametrize("target", ["rv64-scalar", "rv32-scalar", "cortex-m4", "cortex-m33", "aarch64"])
def test_counts_do_not_depend_on_tracing_and_repeat_exactly(tmp_path, target):
    elf, _ = firmware(tmp_path, target)
    data = np.arange(SIZE, dtype=np.int8).tobytes()
    runs = [
        run_firmware(elf, load_target(target), [data] * 2, layers=2, output_bytes=SIZE, trace=trace)
        for trace in (False, True, True)
    ]
    assert runs[0].trace == b""
    assert runs[1].counts == runs[2].counts
    for run in runs:
        assert run.counts[0] == run.counts[1]
        assert all(0 < count < 1000 for count in run.counts[0])
        assert sum(run.counts[0]) <= run.totals[0] < sum(run.counts[0]) + 50
        assert 0 < run.stack_bytes < 2048
    # The counter is read outside of what the trace costs, some 10,000 instructions for each layer.
    assert abs(runs[0].totals[0] - runs[1].totals[0]) < 20


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "nucleo-f446re", "ibex-simple-system"])
def test_cycles_are_estimated_for_each_layer_where_there_is_a_timing_model(tmp_path, target):
    firmware(tmp_path, target)
    counts = json.loads((simulate(tmp_path, target) / "counts.json").read_text())
    cycles, counted = counts["cycles"], counts["inferences"][0]
    assert cycles["model"] == load_target(target).timing
    for name in ("least", "estimate", "most"):
        each = [layer[name] for layer in cycles["layers"]]
        assert sum(each) <= cycles["total"][name] < sum(each) + 200
        assert all(few < cycles < 9 * few for few, cycles in zip(counted["layers"], each, strict=True))
    assert cycles["total"]["least"] <= cycles["total"]["estimate"] <= cycles["total"]["most"]


def test_an_instruction_that_no_class_has_is_named_with_its_place(tmp_path):
    firmware(tmp_path, "cortex-m4", fault='__asm__ volatile("dsb");')
    with pytest.raises(StageError, match=r"timing model cortex-m4 has no class for: dsb sy\nin \w+, model.c:\d+"):
        simulate(tmp_path, "cortex-m4")
    (tmp_path / "simulate").rmdir()
    simulate(tmp_path, "cortex-m4", cycles=False)


@pytest.mark.parametrize("target", ["rv64-rvp", "rv32-rvp", "cortex-m4", "cortex-m55", "aarch64"])
def test_hang_is_found_by_the_instruction_limit_and_names_the_line(tmp_path, target):
    firmware(tmp_path, target, fault='while (model_arena[0] != 77) { __asm__ volatile("" ::: "memory"); }')
    line = next(
        number
        for number, text in enumerate((tmp_path / "emit/src/model.c").read_text().splitlines(), 1)
        if "while" in text
    )
    with pytest.raises(StageError) as raised:
        simulate(tmp_path, target, instruction_limit=1_000_000)
    assert raised.value.at == ("stages", "simulate", "instruction_limit")
    first, where, remedy = str(raised.value).splitlines()
    assert (
        first == "the instruction limit of 1,000,000 for one inference was reached: the firmware hangs, or takes more"
    )
    assert where.endswith(f"model_run, model.c:{line}")
    assert "expected for its layers" in remedy and "set=stages.simulate.instruction_limit=N" in remedy


@pytest.mark.parametrize("target", ["rv64-scalar", "rv32-rvp", "cortex-m4", "aarch64", "host"])
def test_hang_outside_of_an_inference_ends(tmp_path, target, monkeypatch):
    monkeypatch.setattr("stages.simulate.firmware._INSTRUCTIONS_OUTSIDE", 2_000_000)
    monkeypatch.setattr("stages.backends.host.native._SECONDS_AT_LEAST", 1)
    hang = 'void model_init(void) { for (;;) { __asm__ volatile("" ::: "memory"); } }'
    monkeypatch.setattr(tiny_model, "MODEL_C", tiny_model.MODEL_C.replace("void model_init(void) {}", hang))
    firmware(tmp_path, target)
    with pytest.raises(StageError) as raised:
        simulate(tmp_path, target, instruction_limit=1000, timeout=60)
    told = str(raised.value)
    if target == "host":
        assert told.startswith(
            "the firmware was stopped: it took 1 s of processor time: it hangs, or needs more\n`set="
        )
    elif target.startswith("rv"):
        assert told.endswith("or it hung outside of an inference and was stopped after 2,006,000 instructions")
    else:
        assert "it took more than 2,006,000 instructions in all: it hangs outside of an inference" in told
        assert "\nin model_init, model.c:" in told


@pytest.mark.parametrize("target", ["rv64-scalar", "cortex-m4", "aarch64"])
@pytest.mark.parametrize("trace", [True, False])
def test_limit_counts_the_inference_alone(tmp_path, trace, target):
    """An inference takes some 400 instructions; reading, writing and tracing ten of them take hundreds of thousands."""
    firmware(tmp_path, target)
    inputs = InputsConfig(random=10, extremes=False)
    out = simulate(tmp_path, target, trace=trace, inputs=inputs, instruction_limit=20_000)
    assert len(json.loads((out / "counts.json").read_text())["inferences"]) == 10


def test_firmware_that_stops_early_is_not_taken_for_a_result(tmp_path):
    firmware(tmp_path, "rv64-rvp", fault="_Noreturn void board_exit(int); board_exit(0);")
    with pytest.raises(StageError, match="stopped before it wrote its last result"):
        simulate(tmp_path, "rv64-rvp")
