"""What a worker left in a store that this machine sees; its files come here when they are read.

By then the remote store may have lost them, or be given up: nothing that it does fails a run, so the stage is run here
then, and what it reads comes by the same way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pipeline.artifacts.manifest import ORIGIN, content_of
from pipeline.artifacts.store import Artifact
from pipeline.distributed.worker import seen
from pipeline.runs.executor import Work
from pipeline.runs.worker_artifacts import WorkerArtifact

Make = Callable[[Work], tuple[Artifact, bool]]


def left_by(name: str, work: Work, make: Make, *, cached: bool) -> WorkerArtifact | None:
    """What the worker `name` has left for an action; None where this machine does not see it.

    `make` runs the action here, when its files are not to be had any more.
    """
    workspace, key = work.workspace, work.key
    manifest_and_log = seen(lambda: workspace.manifest_and_log(key), lambda: workspace.fetch_error(key))
    if manifest_and_log is None:
        return None
    manifest, log = manifest_and_log
    if cached and ORIGIN in manifest:
        workspace.fetched_keys.add(key)
    found = WorkerArtifact(workspace.store.path(key), manifest, log, _Bringing(name, work, make, manifest))
    workspace.worker_artifacts[key] = found
    return found


class _Bringing:
    """Brings an artifact when it is first asked to. Several threads may ask."""

    def __init__(self, name: str, work: Work, make: Make, manifest: Mapping[str, Any]) -> None:
        self._name, self._work, self._make = name, work, make
        self._manifest = manifest
        self._lock = threading.Lock()
        self.fetched: Artifact | None = None

    def __call__(self) -> Artifact:
        """The artifact in this machine's store. Raises PipelineError."""
        with self._lock:
            if self.fetched is None:
                self.fetched = self._bring()
            return self.fetched

    def _bring(self) -> Artifact:
        workspace, key = self._work.workspace, self._work.key
        was_known = key in workspace.fetched_keys
        found = seen(lambda: workspace.find_or_fetch(key), lambda: workspace.fetch_error(key))
        if found is None:
            found = self._made()
        if found.content != content_of(self._manifest):
            # As a program with a sanitizer, which has the names of its sources in it. What was made of it holds.
            self._work.log(f"it has other bytes than those that worker {self._name} had left")
        workspace.worker_artifacts.pop(key, None)
        if not was_known:
            # It came by way of the remote store, but it was made for this run.
            workspace.fetched_keys.discard(key)
        return found

    def _made(self) -> Artifact:
        work = self._work
        why = work.workspace.fetch_error(work.key) or "it is not to be seen any more"
        work.log(f"made again here, after worker {self._name} had made it: {why}")
        # Somebody else may have left it meanwhile.
        found, _ = self._make(replace(work, force=False))
        if work.workspace.remote is not None:
            work.workspace.remote.send_again(found)
        return found
