"""What a report says of the board: whose it is, how fast it runs, and where its memory was while it was simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NO_REGIONS = ("stack", "reserve")


def board(target: Mapping[str, Any]) -> dict[str, Any] | None:
    """The report's `board` from the target's fields; None for a core by itself.

    `moved` has for each region of the board its address, and the one that the simulator's machine has for it; it is
    empty where the machine has the board's own.
    """
    facts = target["board"]
    if facts is None:
        return None
    there = target["simulated"] or target["memory"]
    named = [name for name in target["memory"] if name not in _NO_REGIONS]
    regions = [(name, target["memory"][name], there[name]) for name in named]
    return {
        **facts,
        "core": target["core"],
        "machine": target["simulator"]["machine"] or target["simulator"]["kind"],
        "moved": [
            {"region": name, "from": own["origin"], "to": moved["origin"], "bytes": moved["length"]}
            for name, own, moved in regions
            if own != moved
        ],
    }


def board_line(found: Mapping[str, Any], ran: Mapping[str, Any] | None = None) -> str:
    """`ST Nucleo-L4R5ZI, cortex-m4 at 120 MHz; simulated on mps2-an386, rom moved from 0x08000000 to 0x00000000`.

    What `ran` on hardware was simulated nowhere.
    """
    if ran:
        return f"{found['title']}, {found['core']}"
    clock = f" at {found['clock'] / 1e6:g} MHz" if found["clock"] else ""
    moves = [f", {move['region']} moved from {move['from']:#010x} to {move['to']:#010x}" for move in found["moved"]]
    return f"{found['title']}, {found['core']}{clock}; simulated on {found['machine']}{''.join(moves)}"


def ran_line(ran: Mapping[str, Any]) -> str:
    """`on hardware at gdb://localhost:3333, cycles by DWT; CPUID 0xc240`; what QEMU counts is told to be none."""
    chip = f"; {', '.join(ran['chip'])}" if ran["chip"] else ""
    where, none = ("on hardware", "") if not ran["simulator"] else (f"in {ran['simulator']}", ", which are no cycles")
    return f"{where} at {ran['place']}, {ran['counter'] or 'nothing counted'}{none}{chip}"


def counted(report: Mapping[str, Any]) -> str:
    """What the figures of layers are: `instructions`, `cycles` of a board or of a core with an engine beside it, or
    `ticks` of the clock of QEMU's machine.
    """
    ran = report.get("ran")
    if not ran:
        return "cycles" if report.get("cycles") else "instructions"
    return "ticks" if ran["simulator"] else "cycles"


def per_mac(report: Mapping[str, Any], count: int | None, macs: int | None) -> float | None:
    """What was counted for each multiplication; None without either, and for ticks, which say nothing of the core."""
    return count / macs if count and macs and counted(report) != "ticks" else None
