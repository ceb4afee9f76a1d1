"""Input guard: an action that does not read exactly the inputs of its key fails.

A key has digests of the time when the run was planned. Stages, compilers and Python's imports read the files later;
meanwhile anybody may edit a file, and even change it back.

    planned    digests go into the key
    start      external files (model, inputs, labels): copy them and compare the copies' digests; the stage reads the
               copies
               code, C, templates: compare digests, note the identity (times, size, inode). Nobody can set the time
               of the last change, so a file that was changed and changed back has another identity
               loaded modules: compare the source they were compiled from (stages.support.system.loaded_code)
               artifacts: as code, but without waiting for a new time stamp, since nobody should edit them
               tools: programs, headers and packages must be those whose versions are in the key
    end        compare again: identities, loaded modules, tools; no new source files; no loaded module that is not in
               the key
    then       the artifact is stored

If a file changed at this very moment, the guard waits some hundredths of a second, so that any further change gets
another time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.artifacts.digest import Identity, identity_of
from pipeline.errors import InputChanged, PipelineError
from stages.support.system.loaded_code import loaded_digest, recorded_loads

if TYPE_CHECKING:
    from pipeline.artifacts.store import Artifact
    from pipeline.keys.planner import Action, Planner

_BLOCK = 1 << 20


class InputGuard:
    """Guards the inputs of one action. `artifacts` are its consumed artifacts, by kind."""

    def __init__(self, action: Action, artifacts: Mapping[str, Artifact], planner: Planner) -> None:
        self._action = action
        self._planner = planner
        self._digests = planner.digests
        self._artifacts = artifacts
        self._code = action.code
        self._identities: dict[Path, Identity] = {}

    @contextmanager
    def running(self, folder: Path) -> Iterator[dict[str, Path]]:
        """Guard a running stage; yields copies of its external files, in `folder`.

        Raises InputChanged, also in place of an error that a change caused in the stage.
        """
        files = self._begin(folder)
        try:
            with recorded_loads() as loaded:
                yield files
        except Exception as error:
            self._check_unchanged(error)
            raise
        self._check_unchanged()
        self._check_loaded(loaded)

    def _begin(self, folder: Path) -> dict[str, Path]:
        kind, planned = self._action.kind, "after the run was planned"
        for name, (path, digest) in self._code.items():
            self._identities[path] = self._expect(path, digest, name, planned)
        self._check_modules()
        for name, artifact in self._artifacts.items():
            for file, entry in artifact.manifest["files"].items():
                path = artifact.files / file
                self._identities[path] = self._expect(path, entry["sha256"], _in_artifact(file, name), planned, False)
        self._check_tools(planned)
        copies = {}
        for index, (name, path) in enumerate(self._action.files.items()):
            place = folder / str(index) / path.name
            place.parent.mkdir(parents=True)
            if (
                copy_with_digest(path, place, kind, self._planner.display_path(path))
                != self._action.ingredients["files"][name]
            ):
                self._digests.forget(path)
                raise InputChanged(kind, self._planner.display_path(path), planned)
            copies[name] = place
        return copies

    def _expect(self, path: Path, digest: str, shown: str, when: str, stable: bool = True) -> Identity:
        """Return the identity of a file with this digest. Raises InputChanged."""
        try:
            identity, current = self._digests.look(path, stable=stable)
        except OSError:
            raise InputChanged(self._action.kind, shown, when) from None
        if current != digest:
            raise InputChanged(self._action.kind, shown, when)
        return identity

    def _digest_now(self, path: Path) -> str:
        try:
            return self._digests.digest(path)
        except OSError:
            return ""

    def _check_unchanged(self, cause: Exception | None = None) -> None:
        during = f"while {self._action.kind} ran"
        read = dict(self._code)
        for name, artifact in self._artifacts.items():
            for file, entry in artifact.manifest["files"].items():
                read[_in_artifact(file, name)] = artifact.files / file, entry["sha256"]
        for name, (path, digest) in read.items():
            # A file with an unchanged identity is not read again.
            if _identity(path) != self._identities[path] or self._digest_now(path) != digest:
                raise InputChanged(self._action.kind, name, during) from cause
        for name in sorted(self._planner.code_names(self._action) - self._action.code.keys()):
            raise InputChanged(self._action.kind, name, during) from cause
        self._check_modules(cause)
        self._check_tools(during, cause)

    def _check_loaded(self, loaded: Iterable[Path]) -> None:
        """Raise PipelineError for a loaded module that the key does not contain."""
        known = {path for path, _ in self._code.values()}
        for path in sorted(set(loaded) - known):
            if self._planner.imports.counts(path):
                raise PipelineError(
                    f"{self._action.kind}: loaded {self._planner.display_path(path)}, which is not in its key",
                    hint="add the file to `sources` of the stage's inputs if it imports modules by computed names",
                )

    def _check_modules(self, cause: Exception | None = None) -> None:
        for name, (path, digest) in self._code.items():
            loaded = loaded_digest(path)
            if loaded == "":
                raise InputChanged(self._action.kind, name, "and Python used old bytecode") from cause
            if loaded not in (None, digest):
                raise InputChanged(self._action.kind, name, "after this process had loaded it") from cause

    def _check_tools(self, when: str, cause: Exception | None = None) -> None:
        for tool in self._action.required_tools:
            replaced = self._planner.tools.changed_file(tool)
            if replaced:
                raise InputChanged(self._action.kind, f"{tool.name} ({replaced})", when) from cause


def _in_artifact(file: str, stage: str) -> str:
    return f"{file} of {stage}'s artifact"


def _identity(path: Path) -> Identity | None:
    try:
        return identity_of(path)
    except OSError:
        return None


def copy_with_digest(path: Path, place: Path, kind: str, shown: str) -> str:
    """Copy a file and return the SHA-256 of its bytes. Raises InputChanged for a missing file."""
    digest = hashlib.sha256()
    try:
        source = path.open("rb")
    except OSError:
        raise InputChanged(kind, shown, "after the run was planned") from None
    with source, place.open("wb") as copy:
        while block := source.read(_BLOCK):
            digest.update(block)
            copy.write(block)
    return digest.hexdigest()
