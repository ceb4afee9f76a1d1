"""Loaded into Dask workers of tests: the folder that the worker runs in is the project, with the fake stages."""

import os
from pathlib import Path
from typing import Any

from pipeline.distributed import worker
from pipeline.runs.workspace import Workspace
from tests.unit.pipeline.fake_stages import fake_registry


def dask_setup(_: Any) -> None:
    """Called by `dask worker --preload`."""
    root = Path.cwd()
    worker._SEEN = 0.5
    if os.environ["FAKE_MOOD"] == "other pipeline":
        worker.PIPELINE["pipeline/new.py"] = "1" * 64
    worker._workspace = lambda: Workspace(root=root, registry=fake_registry(), store=root / "store")  # type: ignore[assignment]
    worker._registry = lambda workspace: workspace.registry  # type: ignore[assignment]
