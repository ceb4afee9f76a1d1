"""Firmware on a board, by way of GDB servers: only the wire is missing."""

import json
import socket
import socketserver
import threading
from pathlib import Path
from typing import Any

import pytest

from pipeline.api import RunResult, run_recipe
from pipeline.commands.bench.command import bench
from pipeline.commands.bench.silicon import silicon_rows
from pipeline.commands.bench.silicon_firmware import built_firmware
from pipeline.errors import PipelineError
from pipeline.project import Project
from pipeline.recipes.silicon import load_silicon
from pipeline.runs.workspace import Workspace
from stages.backends.hardware.gdb import COMMAND, Gdb
from stages.backends.hardware.run import Ran, run_on_board
from stages.backends.targets.chip import ChipNumber
from stages.backends.targets.load import load_target
from stages.backends.targets.runtime import runtime_for
from stages.backends.toolchain.compiler import Source, compile_sources, link
from stages.base import StageError
from stages.delivery.bench.silicon.run import fit_row
from stages.support.system.installation import INSTALLATION
from tests.support import exports
from tests.support.bench_options import BENCH_OPTIONS
from tests.support.gdb_servers import needs_gdb, needs_openocd, openocd_before_spike, qemu
from tests.support.optional import needs
from tests.support.servers import free_port

pytestmark = [needs_gdb, needs("pygdbmi", "hardware")]

CONV = {"op": "conv2d", "shape": [6, 6, 4], "out_channels": 8, "kernel": [3, 3]}
BOARD = """\
schema: 1
boards:
  mine:
    core: rv32-scalar
    timing: ibex
    title: a board behind a wire
    clock: 100M
    memory: {rom: {origin: "0x80000000", length: 256M}, ram: {origin: "0x90000000", length: 64M}, stack: 16K}
"""
RECIPE = {
    "schema": 1,
    "name": "small",
    "target": "cortex-m4",
    "model": CONV,
    "stages": {"simulate": {"inputs": {"random": 2, "extremes": False}}},
}


SMALL = "schema: 1\ntarget: mine\nmodel: {op: fully_connected, shape: [8], out_channels: 4}\n"


def ran(folder: Path, overrides: dict[str, str], recipe: str | dict[str, Any] = RECIPE, **more: Any) -> RunResult:
    return run_recipe(recipe, overrides, store=exports._store(), build=folder / "build", **more)


def program(folder: Path, target: str, main: str) -> Path:
    """A program for a debugger with this `main`."""
    described = load_target(target)
    runtime = runtime_for(described, debugged=True)
    (folder / "main.c").write_text(main)
    sources = [Source(folder / "main.c"), *(Source(path) for path in runtime.sources)]
    link(described, runtime, compile_sources(described, runtime, sources, folder / "objects"), folder / "made.elf")
    return folder / "made.elf"


def on_board(folder: Path, elf: Path, place: str, *, seconds: float = 20, timeout: float = 120, **changes: Any) -> Ran:
    target = load_target("cortex-m4").model_copy(update=changes)
    return run_on_board(elf, target, place, folder, gdb_path=COMMAND, stall_seconds=seconds, timeout=timeout)


def test_a_network_through_qemus_server_verified_layer_by_layer(tmp_path: Path) -> None:
    with qemu("mps2-an386", tmp_path) as (place, _):
        given = {"board": "cortex-m4", "run_on": place, "set": "stages.simulate.instruction_limit=900000000"}
        first = ran(tmp_path, given)
    report = first.report
    assert report is not None and report["verify"]["mismatches"] == 0 and report["verify"]["layers_checked"] == 1
    told = {"place": place, "simulator": "QEMU", "counter": "ticks by SysTick", "chip": ["CPUID 0xc240"]}
    assert report["ran"] == told
    assert 0 < report["layers"][0]["instructions"] <= report["instructions"]["total"]
    assert 0 < report["memory"]["stack_bytes"] < 4096
    assert "instruction_limit has no effect on a board: timeout and stall_seconds limit the run" in report["warnings"]
    page = (first.folder / "report.md").read_text()
    assert "in QEMU at gdb" in page and "ticks by SysTick, which are no cycles; CPUID 0xc240" in page
    assert "| ticks |" in page and "per MAC," not in page and "on hardware" not in page
    shown = (first.folder / "report.html").read_text()
    assert "in QEMU at" in shown and " per MAC<" not in shown
    assert any("is QEMU, not a board: its ticks by SysTick follow the clock" in one for one in report["warnings"])
    # A simulation later is one: it is not taken for what the board did, nor the other way round.
    simulated = ran(tmp_path, {}).report
    assert simulated is not None and simulated["ran"] is None and simulated["layers"][0]["instructions"] > 100
    assert "debugger_stop" not in (ran(tmp_path, {}).folder / "firmware.elf").read_bytes().decode("latin1")


@needs_openocd
def test_a_network_through_openocd_and_a_jtag_wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = "small"
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/small.yaml").write_text(SMALL)
    (tmp_path / "pipeline.yaml").write_text(BOARD)
    project = Project(tmp_path, INSTALLATION)
    compiled = ran(tmp_path, {"set": "stages.compile.host=debugger"}, recipe, until="compile", root=project)
    elf = compiled.artifacts["compile"] / "firmware.elf"
    with openocd_before_spike("rv32imac", elf, tmp_path) as place:
        options = {"run_on": place, "set": "stages.simulate.inputs.random=1"}
        report = ran(tmp_path, options, recipe, root=project).report
    assert report is not None and report["verify"]["mismatches"] == 0
    assert report["ran"]["place"] == place and report["ran"]["counter"] == "cycles by mcycle"
    assert report["ran"]["simulator"] == ""
    assert report["instructions"]["total"] > 100
    row = load_silicon(project).measurements[-1]
    assert (row.chip, row.run, row.cycles) == ("mine-reset", "small", report["instructions"]["total"])
    assert row.arguments == {"options": "set=stages.simulate.inputs.random=1"} and row.compiler.startswith("riscv64")
    assert report["recorded"] == f"{row.cycles:,.0f} cycles of small on mine, in silicon.yaml"
    # The bench makes the same firmware for the simulator, and compares.
    made = tmp_path / "figures.json"
    monkeypatch.setenv("FIRMLINE_STORE", str(exports._store()))
    given = {**BENCH_OPTIONS, "only": "mine-reset", "json": str(made)}
    assert bench(given, root=project, suite_name="silicon") == 0
    (only,) = json.loads(made.read_text())
    simulated = ran(tmp_path, {"set": options["set"]}, recipe, root=project).report
    assert simulated is not None and only["failed"] is None and only["published"] == row.cycles
    assert only["instructions"] == simulated["instructions"]["total"]
    assert only["cycles"][1] == simulated["estimated_cycles"]["total"]
    assert only["error"] == pytest.approx(only["cycles"][1] / row.cycles - 1)
    # A fit counts its instructions.
    (benched,) = (row for row in silicon_rows(project) if row.measurement.chip == "mine-reset")
    assert benched.target is not None and benched.target.timing_model is not None
    with Workspace(root=project) as workspace:
        counted = fit_row(built_firmware(benched.measurement, "mine", workspace), benched.target, benched.published)
    assert counted.cycles(benched.target.timing_model) == pytest.approx(only["cycles"][1])
    assert counted.waits == pytest.approx(0, abs=1) and counted.measured == row.cycles


def test_another_chip_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    elf = program(tmp_path, "cortex-m4", "int main(void) { return 0; }")
    with qemu("mps2-an386", tmp_path) as (place, _):
        # The core is right, the part is not: QEMU's machine has no number there.
        other = (
            *load_target("cortex-m4").chip,
            ChipNumber(name="IDCODE", address=0x2000_0000, mask=0xFFF, value=0x421),
        )
        with pytest.raises(
            StageError, match=r"not that of cortex-m4: IDCODE \(0x20000000\) is 0x0, expected 0x421"
        ) as caught:
            on_board(tmp_path, elf, place, chip=other)
        assert "nothing was written to it" in str(caught.value)
        gdb = Gdb(COMMAND, tmp_path, elf)
        gdb.connect(place.removeprefix("gdb://"))
        assert gdb.memory(0, 64) == bytes(64)
        gdb.close()
        unreadable = (ChipNumber(name="misa", register="misa", value=1),)
        with pytest.raises(StageError, match=r"misa of the chip at gdb://\S+ cannot be read \(misa\)"):
            on_board(tmp_path, elf, place, chip=unreadable)
        assert on_board(tmp_path, elf, place).finished.exit_code == 0


def test_another_architecture_and_a_name_that_nobody_has(tmp_path: Path) -> None:
    target = load_target("rv32-scalar")
    elf = program(tmp_path, "rv32-scalar", "int main(void) { return 0; }")
    more: dict[str, Any] = {"gdb_path": COMMAND, "stall_seconds": 20, "timeout": 60}
    with (
        qemu("mps2-an386", tmp_path) as (place, _),
        pytest.raises(StageError, match=r"is armv?\w*, but the firmware is for riscv\S*\nnothing was written"),
    ):
        run_on_board(elf, target, place, tmp_path, **more)
    with pytest.raises(StageError, match=r"run_on=gdb://nobody\S+: no machine has the name nobody\.invalid"):
        run_on_board(elf, target, "gdb://nobody.invalid:3333", tmp_path, **more)


def test_a_place_in_the_recipes_file_is_warned_of_and_one_on_the_command_line_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"gdb://127.0.0.1:{free_port()}"
    recipe = "target: cortex-m4\nmodel: {op: conv2d, shape: [6, 6, 4], out_channels: 8, kernel: [3, 3]}\nstages:\n"
    theirs = f"{recipe}  compile: {{host: debugger}}\n  simulate:\n    run_on: {place}\n"
    project = exports.project(tmp_path / "mine", {"theirs": theirs, "mine": f"{recipe}  simulate: {{trace: true}}\n"})
    for name, given, warned in (("theirs", {}, True), ("mine", {"run_on": place}, False)):
        with pytest.raises(PipelineError, match="no GDB server answers"):
            run_recipe(name, given, root=project, store=exports._store())
        said = f"warning: recipes/theirs.yaml:7:13: the recipe connects to {place}, which may not be trusted\n"
        assert (said in capsys.readouterr().err) == warned


def test_a_program_that_does_not_stop_and_one_that_faults(tmp_path: Path) -> None:
    hanging = program(
        tmp_path, "cortex-m4", "static volatile int x;\nint main(void)\n{\n    for (;;)\n        x++;\n}\n"
    )
    with qemu("mps2-an386", tmp_path) as (place, _):
        with pytest.raises(
            StageError, match=r"still running on cortex-m4 after 1 s: it hangs, or takes longer\nin main"
        ):
            on_board(tmp_path, hanging, place, seconds=1)
        # The same board takes the next program.
        (tmp_path / "next").mkdir()
        fault = "int main(void)\n{\n    return *(volatile int *)0x70000000;\n}\n"
        faulting = program(tmp_path / "next", "cortex-m4", fault)
        with pytest.raises(StageError, match=r"trapped: access to an address without memory.*0x70000000") as caught:
            on_board(tmp_path, faulting, place)
        assert "in main" in str(caught.value) and "main.c:3" in str(caught.value)


def test_a_program_reads_writes_prints_and_ends(tmp_path: Path) -> None:
    (tmp_path / "in.bin").write_bytes(bytes(range(200)))
    main = """\
#include "board.h"
static char data[200];
int main(void)
{
    int in = board_open_read("in.bin"), out = board_open_write("out.bin");
    if (in < 0 || out < 0 || board_open_read("none.bin") >= 0 || board_open_write("../out.bin") >= 0)
        return 1;
    if (board_read(in, data, 200) < 0 || board_read(in, data, 1) >= 0 || board_read(9, data, 1) >= 0)
        return 2;
    data[0] = 77;
    if (board_write(out, data, 200) < 0 || board_write(1, "hello\\n", 6) < 0)
        return 3;
    board_close(out);
    uint64_t before = board_instructions();
    for (volatile int i = 0; i < 1000; i++) {
    }
    return board_instructions() > before ? 42 : 4;
}
"""
    with qemu("mps2-an386", tmp_path) as (place, _):
        found = on_board(tmp_path, program(tmp_path, "cortex-m4", main), place)
    assert found.finished.exit_code == 42 and found.finished.output == "hello\n"
    assert (tmp_path / "out.bin").read_bytes() == b"M" + bytes(range(1, 200))
    assert not (tmp_path.parent / "out.bin").exists()


def test_a_server_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = program(tmp_path, "cortex-m4", "int main(void) { for (;;) {} }")
    monkeypatch.setattr("stages.backends.hardware.gdb._FIRST_SECONDS", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(StageError, match=r"the server at \S+ does not answer as a GDB server"):
            on_board(tmp_path, elf, f"gdb://127.0.0.1:{silent.getsockname()[1]}")


def test_no_server_and_a_server_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = program(tmp_path, "cortex-m4", "int main(void) { for (;;) {} }")
    nobody = r"no GDB server answers at 127\.0\.0\.1:\d+: nothing listens there, or a firewall blocks it\nstart OpenOCD"
    with pytest.raises(StageError, match=nobody):
        on_board(tmp_path, elf, f"gdb://127.0.0.1:{free_port()}")
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as closing:
        threading.Thread(target=closing.serve_forever, daemon=True).start()
        with pytest.raises(StageError, match=r"the server at \S+ closes the connection\nuse"):
            on_board(tmp_path, elf, f"gdb://127.0.0.1:{closing.server_address[1]}")
        closing.shutdown()
    for command in ("monitor reset halt", "-target-download", "-exec-continue"):
        with qemu("mps2-an386", tmp_path) as (place, process), monkeypatch.context() as patched:
            tell = Gdb.command

            def gone(
                gdb: Gdb, text: str, *more: float, one: str = command, server: Any = process, tell: Any = tell
            ) -> Any:
                if one in text:
                    server.kill()
                    server.wait()
                return tell(gdb, text, *more)

            patched.setattr(Gdb, "command", gone)
            with pytest.raises(StageError, match=r"the GDB server at \S+ has closed the connection\ncheck the probe"):
                on_board(tmp_path, elf, place, seconds=15)


def test_what_is_no_board_is_refused_before_anything_runs(tmp_path: Path) -> None:
    for target in ("host", "aarch64"):
        with pytest.raises(PipelineError, match=rf"{target} is not a board: its programs run on an operating system"):
            ran(tmp_path, {"target": target, "run_on": "gdb://localhost:1"})
    with pytest.raises(PipelineError, match="gdb://HOST:PORT"):
        ran(tmp_path, {"run_on": "localhost:3333"})
    with pytest.raises(PipelineError, match="target= and board= name different targets"):
        ran(tmp_path, {"target": "cortex-m4", "board": "nucleo-f446re"})
    with pytest.raises(PipelineError, match="compiled for a simulator, not for a debugger"):
        ran(tmp_path, {"set": "stages.simulate.run_on='gdb://localhost:1'"})
