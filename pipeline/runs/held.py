"""What an action reads is what its key says, or the action fails and nothing is stored under that key.

Keys follow from digests that are taken when a run is planned; the bytes are read later, by stages, compilers and
Python's imports. In between anybody may edit a file, and put it back.

    planned    digest in the key
    begins     external files (model, inputs, labels) are copied and the copies' digests compared: the
               stage reads the copies, so what happens to the files does not matter any more
               code, C, templates: the digest is compared, the file's identity (times, size, inode) noted. Nobody can
               set the time of the last change, so a file that was changed and put back has another identity
               modules that are loaded: what they were compiled from is compared (stages.system.loaded_code)
               artifacts of other stages: as code, though they need not have settled: nobody is meant to edit them
               tools: programs, headers and packages are as when their versions were asked
    ends       the same again: every identity, every loaded module, every tool, and no new file among the sources;
               and no module was loaded that the key does not name
    stored     only then

Code that changed in this very moment is waited for, some hundredths of a second, until any further change gives it
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
from stages.system.loaded_code import loaded_digest, loads

if TYPE_CHECKING:
    from pipeline.artifacts.store import Artifact
    from pipeline.keys.planner import Action, Planner

_BLOCK = 1 << 20


class Held:
    """One action and all that it reads. `artifacts` are those that it consumes, by kind."""

    def __init__(self, action: Action, artifacts: Mapping[str, Artifact], planner: Planner) -> None:
        self._action = action
        self._planner = planner
        self._digests = planner.digests
        self._artifacts = artifacts
        self._code = action.code
        self._identities: dict[Path, Identity] = {}

    @contextmanager
    def running(self, folder: Path) -> Iterator[dict[str, Path]]:
        """While this lasts the stage runs; gives it its external files, copied to `folder`.

        Raises InputChanged, also in place of what the stage raises when it stumbled over a change.
        """
        files = self._begin(folder)
        try:
            with loads() as loaded:
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
            if copied(path, place, kind, self._planner.display_path(path)) != self._action.ingredients["files"][name]:
                self._digests.forget(path)
                raise InputChanged(kind, self._planner.display_path(path), planned)
            copies[name] = place
        return copies

    def _expect(self, path: Path, digest: str, shown: str, when: str, settle: bool = True) -> Identity:
        """The identity of a file that has this digest."""
        try:
            identity, found = self._digests.look(path, settle=settle)
        except OSError:
            raise InputChanged(self._action.kind, shown, when) from None
        if found != digest:
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
            # What has settled is known by its identity, and not read again.
            if _identity(path) != self._identities[path] or self._digest_now(path) != digest:
                raise InputChanged(self._action.kind, name, during) from cause
        stage, target = self._action.stage, self._action.target
        now = {
            *self._planner.source_names(stage, target),
            *stage.target_code(target),
            *stage.model_code(self._action.model),
            *self._planner.operator_code(self._action.code),
        }
        for name in sorted(now - self._action.code.keys()):
            raise InputChanged(self._action.kind, name, during) from cause
        self._check_modules(cause)
        self._check_tools(during, cause)

    def _check_loaded(self, loaded: Iterable[Path]) -> None:
        """Raises PipelineError for a module that this run loaded, though its key does not name it."""
        known = {path for path, _ in self._code.values()}
        for path in sorted(set(loaded) - known):
            if self._planner.imports.counts(path):
                raise PipelineError(
                    f"{self._action.kind}: loaded {self._planner.display_path(path)}, which is not in its key",
                    hint="a stage that imports by a name made up at run time names the file in its `sources`",
                )

    def _check_modules(self, cause: Exception | None = None) -> None:
        for name, (path, digest) in self._code.items():
            loaded = loaded_digest(path)
            if loaded == "":
                raise InputChanged(self._action.kind, name, "and Python took the bytecode of before") from cause
            if loaded not in (None, digest):
                raise InputChanged(self._action.kind, name, "after this process had loaded it") from cause

    def _check_tools(self, when: str, cause: Exception | None = None) -> None:
        for tool in self._action.wanted:
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


def copied(path: Path, place: Path, kind: str, shown: str) -> str:
    """sha256 of the bytes that were copied. Raises InputChanged for a file that is no longer there."""
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
