"""Parse JSON files that people or other programs may have damaged."""

import json
from typing import Any


def parsed_json(text: str | bytes) -> Any:
    """Return the value. Raises ValueError for invalid or too deeply nested JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
