"""Where a board is: `gdb://localhost:3333`."""

from __future__ import annotations

import re

_PLACE = re.compile(r"gdb://(?P<host>[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})")


def check_place(place: str) -> str:
    """The place as it is. Raises ValueError for one that is no address of a GDB server."""
    address(place)
    return place


def address(place: str) -> str:
    """`localhost:3333`, as GDB takes it. Raises ValueError."""
    found = _PLACE.fullmatch(place)
    if found is None or not 0 < int(found["port"]) < 65536:
        raise ValueError("a board is at gdb://HOST:PORT, such as gdb://localhost:3333")
    return f"{found['host']}:{found['port']}"
