"""Artifacts that workers made. Their files are fetched when something reads them.

Later stages run on workers too, which read the shared store. The machine that distributes the work needs the keys, and
only the files that preflight checks and the build folder read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipeline.artifacts.store import Artifact


class ArtifactFetcher(Protocol):
    """Fetches an artifact into this machine's store. Repeated calls return the same artifact."""

    @property
    def fetched(self) -> Artifact | None:
        """The fetched artifact; None before the first call."""

    def __call__(self) -> Artifact:
        """Return the artifact with verified files. Raises PipelineError."""


@dataclass(frozen=True)
class WorkerArtifact(Artifact):
    """An artifact of a shared store; `text` is its log.

    If its files are lost when `fetch` is called, this machine makes it again. Its bytes may then differ, and with
    changed inputs also its key. From then on, the fetched artifact replaces this one.
    """

    text: str
    fetch: ArtifactFetcher

    @property
    def files(self) -> Path:
        """The folder of the stage's files. Raises PipelineError."""
        return self.fetch().files

    @property
    def log(self) -> str:
        """The stage's log."""
        return self.text


def local_artifact(artifact: Artifact) -> Artifact:
    """Return the artifact from this machine's store, fetched if necessary.

    Raises PipelineError.
    """
    return artifact.fetch() if isinstance(artifact, WorkerArtifact) else artifact


def local_if_fetched(artifact: Artifact) -> Artifact:
    """Return the artifact from this machine's store if it was fetched, else unchanged."""
    return (artifact.fetch.fetched or artifact) if isinstance(artifact, WorkerArtifact) else artifact


class ArtifactFolders(Mapping[str, Path]):
    """Folders of artifacts by name. A worker's files are fetched on access."""

    def __init__(self, artifacts: Mapping[str, Artifact]) -> None:
        self._artifacts = artifacts

    def __getitem__(self, name: str) -> Path:
        return self._artifacts[name].files

    def __iter__(self) -> Iterator[str]:
        return iter(self._artifacts)

    def __len__(self) -> int:
        return len(self._artifacts)

    def __contains__(self, name: object) -> bool:
        # Do not fetch the files.
        return name in self._artifacts
