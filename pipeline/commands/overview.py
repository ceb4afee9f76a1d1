"""`doit help`: all commands on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def overview(commands: Mapping[str, Any]) -> str:
    """A line for each command (its class by name), in the order given."""
    width = max(map(len, commands))
    lines = ["commands:"]
    lines += [f"  doit {name:{width}}  {command.doc_purpose}" for name, command in commands.items()]
    lines += [
        "",
        "`doit help COMMAND` says what a command takes; docs/commands.md has examples.",
        "`doit NAME` is `doit run NAME`.",
    ]
    return "\n".join(lines)
