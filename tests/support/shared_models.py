"""Real models, which are not part of the repository: tests that want them skip, and say so, when they are not there."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("FIRMLINE_MODELS") or Path(__file__).parents[3] / "shared" / "models")


def shared_models(pattern: str) -> list[Path]:
    """Files of the folder FIRMLINE_MODELS, or of ../shared/models beside the repository; skips the test if none."""
    found = sorted(FOLDER.glob(pattern))
    if not found:
        pytest.skip(f"no real models at {FOLDER}/{pattern}; set FIRMLINE_MODELS to their folder")
    return found
