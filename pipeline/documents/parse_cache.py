"""Cache of parsed YAML files, by the digest of their text."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stages.support.system.caches import read_cache, write_cache
from stages.support.system.installation import build_cache

# Maximum number of entries; above it the oldest are deleted.
_MAX_ENTRIES = 500


def cached_parse(text: str, parse: Callable[[], Any]) -> Any:
    """Return the cached value of a text, or call `parse` and cache its result. Exceptions of `parse` propagate."""
    path = build_cache("documents") / f"{hashlib.sha256(f'{_parser_digest()}{text}'.encode()).hexdigest()}.json"
    entry = read_cache(path)
    if isinstance(entry, dict) and "value" in entry:
        return entry["value"]
    value = parse()
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        if json.loads(json.dumps(value)) == value:
            _trim(path.parent)
            write_cache(path, {"value": value})
    return value


@cache
def _parser_digest() -> str:
    """Digest of the accepted YAML subset and of PyYAML (the file with its version)."""
    parser = find_spec("yaml")
    files = [Path(__file__).with_name("yaml_subset.py"), *([Path(parser.origin)] if parser and parser.origin else [])]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _trim(folder: Path) -> None:
    entries = list(folder.glob("*.json"))
    if len(entries) > _MAX_ENTRIES:
        for path in sorted(entries, key=lambda path: path.stat().st_mtime)[: _MAX_ENTRIES // 2]:
            path.unlink(missing_ok=True)
