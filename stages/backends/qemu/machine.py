"""Memory of a QEMU machine, read from its monitor, for errors about a wrong memory map."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache

from stages.backends.targets.spec import Target

# A line of `info mtree -f`: "  0000000020000000-00000000203fffff (prio 0, ram): mps.ssram23". Behind a memory
# protection controller of Arm's subsystems (tz-mpc) there is memory too.
_VIEW = re.compile(r"^FlatView #\d+$", re.MULTILINE)
_CORE = re.compile(r'^ AS "cpu-memory-\d+"', re.MULTILINE)
_RANGE = re.compile(r"^  ([0-9a-f]{16})-([0-9a-f]{16}) \(prio -?\d+, (\S+)\): (\S+)", re.MULTILINE)
_CONTROLLER = "tz-mpc-upstream"
_SECONDS = 20


def device_options(target: Target) -> Iterator[str]:
    """Return QEMU's options for the target's devices: `-device loader,addr=0`.

    Commas in values are doubled.
    """
    for device in target.simulator.devices:
        values = (f"{key}={str(value).replace(',', ',,')}" for key, value in device.parameters.items())
        yield from ("-device", ",".join([device.name, *values]))


@cache
def machine_memory(command: str, machine: str, *devices: str) -> list[tuple[int, int]]:
    """Return start and end of each memory range of a machine's first core.

    Empty if QEMU does not answer. Adjacent pieces are joined, unless they have the same name: then both are the same
    memory.
    """
    arguments = [command, "-M", machine, "-S", "-nographic", "-serial", "none", "-monitor", "stdio", *devices]
    try:
        finished = subprocess.run(
            arguments, input="info mtree -f\nquit\n", capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    views = _VIEW.split(finished.stdout.replace("\r", ""))
    return next((_memory_of(view) for view in views if _CORE.search(view)), [])


def without_memory(target: Target) -> str:
    """Return why no firmware can run: regions where the machine has no memory; '' if none."""
    simulator = target.simulator
    if not simulator.machine or target.memory is None:
        return ""
    there = machine_memory(simulator.command, simulator.machine, *device_options(target))
    missing = [
        f"{name} ({region.origin:#010x}, {region.length:,} bytes)"
        for name, region in target.memory.regions.items()
        if not any(start <= region.origin and region.end <= end for start, end in there)
    ]
    if not there or not missing:
        return ""
    found = ", ".join(f"{start:#010x} to {end - 1:#010x}" for start, end in there)
    return (
        f"{simulator.machine} has no memory where {target.name} declares {' and '.join(missing)}\n"
        f"it has memory at {found}"
    )


def _memory_of(view: str) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    before = ""
    for start, last, kind, name in _RANGE.findall(view):
        if kind not in ("ram", "rom", "romd") and name != _CONTROLLER:
            continue
        first, end = int(start, 16), int(last, 16) + 1
        if merged and merged[-1][1] == first and (name != before or name == _CONTROLLER):
            first = merged.pop()[0]
        merged.append((first, end))
        before = name
    return merged
