"""Address of a board's GDB server: `gdb://localhost:3333`."""

import re

_PLACE = re.compile(r"gdb://(?P<server>[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})")


def check_place(place: str) -> str:
    """Return the address unchanged. Raises ValueError unless it is the address of a GDB server."""
    address(place)
    return place


def address(place: str) -> str:
    """Return `localhost:3333` as GDB expects it. Raises ValueError."""
    match = _PLACE.fullmatch(place)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise ValueError("a board is at gdb://HOST:PORT, such as gdb://localhost:3333")
    return f"{match['server']}:{match['port']}"
