"""`doit doctor`."""

import json
from pathlib import Path

import pytest

from pipeline.commands.doctor import Doctor
from pipeline.commands.exit_codes import PENDING
from stages.support.system.installation import INSTALLATION as ROOT

Capture = pytest.CaptureFixture[str]


def look(*targets: str) -> int:
    return Doctor().execute({"json": True, "install": False}, list(targets))


def test_a_whole_machine(capsys: Capture) -> None:
    assert look("nrf52840-dk", "rv32-rvp") == 0
    report = json.loads(capsys.readouterr().out)
    assert {record["core"]: record["problem"] for record in report["self_tests"]} == {"cortex-m4": "", "rv32-rvp": ""}
    cores = {record["command"]: record["cores"] for record in report["tools"]}
    assert cores["arm-none-eabi-gcc"] == ["cortex-m4"]
    groups = {record["group"] for record in report["optional"]}
    assert groups == {"audio", "dask", "hardware", "onnx", "ptq", "remote", "watch"}
    assert all(f"`{group}`" in (ROOT / "docs/how-to/install.md").read_text() for group in groups)


def test_a_compiler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    for name in ("gcc", "g++", "dtc", "riscv64-unknown-elf-gcc", "riscv64-unknown-elf-ld"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look("cortex-m4", "rv64-scalar") == PENDING
    report = json.loads(capsys.readouterr().out)
    missing = {record["command"]: record["install"] for record in report["tools"] if record["problem"]}
    assert missing.keys() >= {"arm-none-eabi-gcc", "qemu-system-arm"}
    assert "apt-get install gcc-arm-none-eabi" in missing["arm-none-eabi-gcc"]
    problems = {record["core"]: record["problem"] for record in report["self_tests"]}
    assert problems["rv64-scalar"] == ""
    assert problems["cortex-m4"].startswith("needs ")


def test_a_simulator_that_counts_wrong(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from stages.backends.simulators import bench

    def counts(*_: object, **__: object) -> bench.BenchRun:
        return bench.BenchRun("works", {"short": 3005, "long": 6006})

    monkeypatch.setattr(bench, "compile_and_run_c", counts)
    assert look("cortex-m4") == PENDING
    assert "wrong count: 3,005 and 6,006" in capsys.readouterr().out
