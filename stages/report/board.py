"""Board section of a report: title, clock, and memory addresses in the simulation."""

from collections.abc import Mapping
from typing import Any

_NO_REGIONS = ("stack", "reserve")


def board(target: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the report's `board` from the target's fields; None if the target is a core.

    `moved` lists the memory regions whose simulated address differs from the board's.
    """
    facts = target["board"]
    if facts is None:
        return None
    simulated = target["simulated"] or target["memory"]
    names = [name for name in target["memory"] if name not in _NO_REGIONS]
    regions = [(name, target["memory"][name], simulated[name]) for name in names]
    return {
        **facts,
        "core": target["core"],
        "machine": target["simulator"]["machine"] or target["simulator"]["kind"],
        "moved": [
            {
                "region": name,
                "from": real["origin"],
                "to": simulated_region["origin"],
                "bytes": simulated_region["length"],
            }
            for name, real, simulated_region in regions
            if real != simulated_region
        ],
    }


def board_line(board: Mapping[str, Any], ran: Mapping[str, Any] | None = None) -> str:
    """Return the line that describes the board.

    `ST Nucleo-L4R5ZI, cortex-m4 at 120 MHz; simulated on mps2-an386, rom moved from 0x08000000 to 0x00000000`.

    With `ran` (a run on hardware) the simulator is omitted.
    """
    if ran:
        return f"{board['title']}, {board['core']}"
    clock = f" at {board['clock'] / 1e6:g} MHz" if board["clock"] else ""
    moves = [f", {move['region']} moved from {move['from']:#010x} to {move['to']:#010x}" for move in board["moved"]]
    return f"{board['title']}, {board['core']}{clock}; simulated on {board['machine']}{''.join(moves)}"


def ran_line(ran: Mapping[str, Any]) -> str:
    """Return the line that describes a run on hardware.

    `on hardware at gdb://localhost:3333, cycles by DWT; CPUID 0xc240`. Marks counts of QEMU, which are no cycles.
    """
    chip = f"; {', '.join(ran['chip'])}" if ran["chip"] else ""
    device, note = ("on hardware", "") if not ran["simulator"] else (f"in {ran['simulator']}", ", which are no cycles")
    return f"{device} at {ran['place']}, {ran['counter'] or 'nothing counted'}{note}{chip}"


def counted(report: Mapping[str, Any]) -> str:
    """Return the unit of the layers' figures: `instructions`, `cycles` or `ticks`.

    Boards and targets with an accelerator count cycles. QEMU in place of a board counts ticks of its clock.
    """
    ran = report.get("ran")
    if not ran:
        return "cycles" if report.get("cycles") else "instructions"
    return "ticks" if ran["simulator"] else "cycles"


def per_mac(report: Mapping[str, Any], count: int | None, macs: int | None) -> float | None:
    """Return the count per MAC; None if either is missing or 0.

    Also None for ticks, which do not measure the core.
    """
    return count / macs if count and macs and counted(report) != "ticks" else None
