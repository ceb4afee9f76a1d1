"""JSON caches that are safe to delete. A damaged cache is ignored."""

import contextlib
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from stages.support.system.atomic_write import write_atomically


def read_cache(path: Path) -> Any:
    """Return the JSON value that `write_cache` wrote; None if it is missing or altered.

    The digest matters: a wrong cache entry would give a file the digest of another.
    """
    try:
        digest, _, text = path.read_text(encoding="utf-8").partition("\n")
        if hashlib.sha256(text.encode()).hexdigest() == digest:
            return json.loads(text)
    except (OSError, ValueError):
        pass
    return None


def write_cache(path: Path, value: Any) -> None:
    """Write a JSON value with its digest. Failures are ignored."""
    text = json.dumps(value)
    with contextlib.suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        write_atomically(path, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")
