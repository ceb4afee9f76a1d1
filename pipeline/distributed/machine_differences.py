"""Compare the code and tools of a worker with those of the client.

A worker computes the key's ingredients itself and refuses an action if they differ. Values are plain, so that machines
with different code can exchange them.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Ingredients of a key that depend on the machine.
MACHINE = ("tools", "code", "plug-in", "parameters", "target", "model")
_CALLED = {"tools": "tool", "code": "code", "parameters": "parameter"}
_MOST_NAMED = 3


def differences(other: Mapping[str, Any], own_values: Mapping[str, Any]) -> list[str]:
    """Return the differing ingredients, such as `tool compiler: 12.2.0 there, 13.1.0 here`."""
    result: list[str] = []
    for part in MACHINE:
        a, b = other.get(part) or {}, own_values.get(part) or {}
        for name in sorted({*a, *b}):
            if a.get(name) != b.get(name):
                both = f"{_shown(a.get(name))} there, {_shown(b.get(name))} here"
                result.append(f"{_CALLED.get(part, part)} {name}: {both}")
    return result


def in_one_line(texts: list[str]) -> str:
    """Return the first differences in one line."""
    more = f"; and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return "; ".join(texts[:_MOST_NAMED]) + more


def code_of(installation: Path, folder: str) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder of Firmline's code, by its relative name."""
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
