"""Files that save time and may be deleted: JSON that is believed only as it was written."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from stages.support.system.atomic_write import write_atomically


def read_cache(path: Path) -> Any:
    """The JSON value that `write_cache` wrote; None when there is none, or a byte of it was altered.

    A missing or damaged cache costs time, nothing else: one that is believed though it is wrong would give a file the
    digest of another.
    """
    try:
        digest, _, text = path.read_text(encoding="utf-8").partition("\n")
        if hashlib.sha256(text.encode()).hexdigest() == digest:
            return json.loads(text)
    except (OSError, ValueError):
        pass
    return None


def write_cache(path: Path, value: Any) -> None:
    """Write a JSON value with its digest. A cache that cannot be written is dropped."""
    text = json.dumps(value)
    with contextlib.suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        write_atomically(path, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")
