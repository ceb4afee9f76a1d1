"""Artifacts that another machine made, whose files come here when something reads them.

The stages that follow are run by workers too, which have them from the store that all share: the machine that gives the
work away needs what an artifact is called, and the files of the few that early checks and the build folder are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipeline.artifacts.store import Artifact


class Bringing(Protocol):
    """Gives an artifact as it is in this machine's store, each time the same."""

    @property
    def brought(self) -> Artifact | None:
        """What it gave; None before."""

    def __call__(self) -> Artifact:
        """The artifact, whole and compared with its digests. Raises PipelineError."""


@dataclass(frozen=True)
class Elsewhere(Artifact):
    """An artifact of a store that this machine sees; `text` is its log.

    Where it is not to be had any more when `bring` is asked for it, it is made again: with bytes that may be others,
    and, where so are those of what it is made of, under another key. From then on what was brought is the artifact.
    """

    text: str
    bring: Bringing

    @property
    def files(self) -> Path:
        """The folder of what the stage wrote. Raises PipelineError."""
        return self.bring().files

    @property
    def log(self) -> str:
        """What the stage logged when it made this."""
        return self.text


def here(artifact: Artifact) -> Artifact:
    """The artifact as it is in this machine's store. Raises PipelineError."""
    return artifact.bring() if isinstance(artifact, Elsewhere) else artifact


def here_or_elsewhere(artifact: Artifact) -> Artifact:
    """The artifact as it is in this machine's store if it came there, else as it is."""
    return (artifact.bring.brought or artifact) if isinstance(artifact, Elsewhere) else artifact


class Folders(Mapping[str, Path]):
    """The folders of artifacts by name; of one that is elsewhere its files are fetched when it is asked for."""

    def __init__(self, artifacts: Mapping[str, Artifact]) -> None:
        self._artifacts = artifacts

    def __getitem__(self, name: str) -> Path:
        return self._artifacts[name].files

    def __iter__(self) -> Iterator[str]:
        return iter(self._artifacts)

    def __len__(self) -> int:
        return len(self._artifacts)

    def __contains__(self, name: object) -> bool:
        # Without a look at the files.
        return name in self._artifacts
