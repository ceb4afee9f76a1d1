"""What YAML files hold, by the digest of their text: each start reads those of the last, and parsing is slow."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stages.system.caches import read_cache, write_cache
from stages.system.installation import build_cache

# Texts of which the values are kept, at most; of many more the oldest go.
_MOST = 500


def cached_parse(text: str, parse: Callable[[], Any]) -> Any:
    """What `parse` makes of a text, which is asked for a text that is new. Whatever it raises passes through."""
    place = build_cache("documents") / f"{hashlib.sha256(f'{_rules()}{text}'.encode()).hexdigest()}.json"
    kept = read_cache(place)
    if isinstance(kept, dict) and "value" in kept:
        return kept["value"]
    value = parse()
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        if json.loads(json.dumps(value)) == value:
            _trim(place.parent)
            write_cache(place, {"value": value})
    return value


@cache
def _rules() -> str:
    """A digest of what YAML may be here, and of the parser: its version is in its first file, which is not run."""
    parser = find_spec("yaml")
    files = [Path(__file__).with_name("yaml_subset.py"), *([Path(parser.origin)] if parser and parser.origin else [])]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _trim(folder: Path) -> None:
    kept = list(folder.glob("*.json"))
    if len(kept) > _MOST:
        for place in sorted(kept, key=lambda place: place.stat().st_mtime)[: _MOST // 2]:
            place.unlink(missing_ok=True)
