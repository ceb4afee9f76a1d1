"""Results of workers in a store that this machine sees; files are fetched on access.

The remote store may have lost them by then, or be disabled. The stage then runs here, and its inputs are fetched the
same way.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pipeline.artifacts.manifest import ORIGIN, content_of
from pipeline.artifacts.store import Artifact
from pipeline.distributed.worker import wait_until_visible
from pipeline.runs.executor import Work
from pipeline.runs.worker_artifacts import WorkerArtifact

Make = Callable[[Work], tuple[Artifact, bool]]


def result_of(name: str, work: Work, make: Make, *, cached: bool) -> WorkerArtifact | None:
    """Return the artifact that worker `name` made; None if this machine does not see it.

    `make` runs the action here if the files are lost.
    """
    workspace, key = work.workspace, work.key
    manifest_and_log = wait_until_visible(lambda: workspace.manifest_and_log(key), lambda: workspace.fetch_error(key))
    if manifest_and_log is None:
        return None
    manifest, log = manifest_and_log
    if cached and ORIGIN in manifest:
        workspace.fetched_keys.add(key)
    artifact = WorkerArtifact(workspace.store.path(key), manifest, log, _ResultFetcher(name, work, make, manifest))
    workspace.worker_artifacts[key] = artifact
    return artifact


class _ResultFetcher:
    """Fetches an artifact on the first call. Thread-safe."""

    def __init__(self, name: str, work: Work, make: Make, manifest: Mapping[str, Any]) -> None:
        self._name, self._work, self._make = name, work, make
        self._manifest = manifest
        self._lock = threading.Lock()
        self.fetched: Artifact | None = None

    def __call__(self) -> Artifact:
        """Return the artifact from this machine's store. Raises PipelineError."""
        with self._lock:
            if self.fetched is None:
                self.fetched = self._fetch()
            return self.fetched

    def _fetch(self) -> Artifact:
        workspace, key = self._work.workspace, self._work.key
        was_known = key in workspace.fetched_keys
        artifact = wait_until_visible(lambda: workspace.find_or_fetch(key), lambda: workspace.fetch_error(key))
        if artifact is None:
            artifact = self._make_again()
        if artifact.content != content_of(self._manifest):
            # Such as a sanitizer's program, which contains the paths of its sources. Derived artifacts stay valid.
            self._work.log(f"its bytes differ from those of worker {self._name}")
        workspace.worker_artifacts.pop(key, None)
        if not was_known:
            # It was fetched from the remote store, but made for this run.
            workspace.fetched_keys.discard(key)
        return artifact

    def _make_again(self) -> Artifact:
        work = self._work
        reason = work.workspace.fetch_error(work.key) or "it is not visible any more"
        work.log(f"made again here, after worker {self._name} had made it: {reason}")
        # Another process may have made it meanwhile.
        artifact, _ = self._make(replace(work, force=False))
        if work.workspace.remote is not None:
            work.workspace.remote.send_again(artifact)
        return artifact
