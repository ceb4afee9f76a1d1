"""What goes to a worker and comes back: plain values, which machines with other code can read too.

A worker refuses what it would make otherwise: it looks up the key's ingredients on its own machine and compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Of a key's ingredients, those that follow from the machine: its code and its tools.
MACHINE = ("tools", "code", "plug-in", "parameters", "target", "model")
_CALLED = {"tools": "tool", "code": "code", "parameters": "parameter"}
_MOST_NAMED = 3


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """What two machines' ingredients have otherwise, each with both: `tool compiler: 12.2.0 there, 13.1.0 here`."""
    found: list[str] = []
    for part in MACHINE:
        a, b = there.get(part) or {}, here.get(part) or {}
        for name in sorted({*a, *b}):
            if a.get(name) != b.get(name):
                both = f"{_shown(a.get(name))} there, {_shown(b.get(name))} here"
                found.append(f"{_CALLED.get(part, part)} {name}: {both}")
    return found


def told(found: list[str]) -> str:
    """Differences in one line."""
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return "; ".join(found[:_MOST_NAMED]) + more


def code_of(installation: Path, folder: str) -> dict[str, str]:
    """sha256 of each file of a folder of Firmline's code, by its name below the installation."""
    return {
        path.relative_to(installation).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((installation / folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    text = str(value)
    return text[:12] if len(text) == 64 else text if len(text) <= 60 else f"{text[:57]}..."
