"""Compilers and simulators of all targets, which the tests need."""

import shutil

# One program of each Debian package, or pair of packages, that the targets need.
_PROGRAMS = (
    *("gcc", "g++", "dtc", "riscv64-unknown-elf-gcc", "arm-none-eabi-gcc", "aarch64-linux-gnu-gcc"),
    *("qemu-system-arm", "qemu-aarch64"),
)


def install_missing() -> None:
    """Install what is missing as `doit doctor --install` does, where bootstrap may. Tests of the others fail."""
    if all(map(shutil.which, _PROGRAMS)):
        return
    from pipeline.commands.doctor import install_tools, targets_of
    from pipeline.keys.package_groups import install_group
    from pipeline.runs.workspace import Workspace

    with Workspace(install=install_group) as workspace:
        install_tools(workspace, targets_of(workspace, ()))
