"""JSON of files that people and other programs write, and damage."""

from __future__ import annotations

import json
from typing import Any


def parsed_json(text: str | bytes) -> Any:
    """The value. Raises ValueError for what is no JSON, and for what is nested more deeply than can be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
