"""One run of one recipe: which actions are done, running those that are not, and leaving the build folder."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.manifest import content_of
from pipeline.artifacts.store import Artifact
from pipeline.errors import (
    DiskFullError,
    PipelineError,
    StageCrashed,
    StageFailed,
    environment_error,
)
from pipeline.keys.planner import Action, Plan
from pipeline.keys.repeat_command import repeat_command
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import plugin_error
from pipeline.runs.elsewhere import Folders, here_or_elsewhere
from pipeline.runs.executor import Work
from pipeline.runs.foresight import Foresight
from pipeline.runs.publish import publish
from pipeline.runs.workspace import Workspace
from stages.base import StageError
from stages.messages import escape
from stages.system.below import below
from stages.system.pathname import what_lies_at
from stages.system.system_limits import is_disk_full, system_limit


class Display(Protocol):
    """Where the progress of running stages is shown."""

    def progress(self, recipe: str, kind: str, message: str, fraction: float | None) -> None:
        """A stage says what it is doing, and how far it is (0 to 1) if it knows."""


class _NoDisplay:
    def progress(self, recipe: str, kind: str, message: str, fraction: float | None) -> None:
        """Show nothing."""


@dataclass(frozen=True)
class StageResult:
    """How one stage went. `seconds` is how long it took when it ran, in this run or in an earlier one.

    `remote`: it is cached, and this run had it from the remote store.
    """

    kind: str
    key: str
    cached: bool
    seconds: float
    remote: bool = False


class Session:
    """Runs the actions of one plan, as far as the stage `until` ('': all).

    Methods may be called from several threads, each action from one.

    log.txt has what stages log as they log it, and for a cached stage what it logged when it ran.
    """

    def __init__(self, workspace: Workspace, plan: Plan, display: Display | None = None, until: str = "") -> None:
        self.workspace = workspace
        self.plan = plan
        self.folder = self._build_folder()
        self.results: dict[str, StageResult] = {}
        # Stages that ran and left what the recipe had of them already.
        self.unchanged: set[str] = set()
        self.report: dict[str, Any] | None = None
        self._done: dict[str, Artifact] = {}
        self._last: Mapping[str, str] | None = None
        self._closed = False
        self._foresight = Foresight(plan, workspace.root, until)
        self._until = until
        self.display = display or _NoDisplay()
        self._log = _RunLog(self.folder / "log.txt", plan)

    @property
    def log_name(self) -> str:
        """How messages call the log: relative to the project when it lies inside."""
        return self.workspace.display_path(self._log.path)

    def log_traceback(self) -> None:
        """Put the traceback of the exception being handled into the log."""
        for line in traceback.format_exc().splitlines():
            self._log.write("error", line)

    @property
    def folders(self) -> Folders:
        """The folders of the artifacts, by the kinds of their stages."""
        return Folders(dict(self._done))

    def is_done(self, action: Action) -> bool:
        """Whether the store has the action's artifact, and those that it follows from, whole and unaltered."""
        return self._find(action) is not None

    def foresee(self) -> None:
        """Let the stages say what they are sure to refuse; so does what lies where results go. Raises PipelineError.

        Stages whose artifacts are all there have looked at this data and this model before: nobody is asked again.
        """
        if not self._until:
            self._check_folder()
        if not self._done and self._is_stored():
            return
        try:
            self._foresight.look(dict(self._done))
        except PipelineError as error:
            if error.__cause__ is not None and not isinstance(error.__cause__, StageError):
                self.log_traceback()
            self._log.write("foresee", f"failed: {error}")
            raise

    def _is_stored(self) -> bool:
        """Whether the store, without the remote one, has what this session is to make."""
        contents: dict[str, str] = {}
        for action in self.plan.actions:
            inputs = {kind: contents[name] for kind, name in action.link.inputs.items()}
            found = self.workspace.store.find(digest_of(action.consuming(inputs)))
            if found is None:
                return False
            if action.kind == self._until:
                break
            contents[action.kind] = found.content
        return True

    def _check_folder(self) -> None:
        """Raises PipelineError when no folder can be made, or filled, where the results go."""
        place = self.folder
        while place != place.parent and not os.path.lexists(place):
            place = place.parent
        shown = self.workspace.display_path(place)
        if not place.is_dir():
            there = what_lies_at(place) or "a file"
            message = f"{shown} is {there}; the results go into the folder {self.workspace.display_path(self.folder)}"
            raise PipelineError(message, hint="move it away")
        if not os.access(place, os.W_OK | os.X_OK):
            raise PipelineError(
                f"{shown} cannot be written; the results go into {self.workspace.display_path(self.folder)}"
            )

    def run(self, action: Action, *, force: bool = False, shared: bool = False) -> StageResult:
        """Make the action's artifact unless the store has it; `force` makes it in any case.

        One that is `shared` with another recipe is made even where a later stage of this recipe is sure to refuse.
        Raises StageFailed, StageCrashed (its traceback is in the log), StoreError.
        """
        if not force and (done := self.results.get(action.kind)) is not None:
            return done
        if not shared:
            for name in action.link.inputs.values():
                self._artifact(action, self.plan[name])
            self.foresee()
        # Those that came here for that may have other bytes than before.
        artifacts = {kind: self._artifact(action, self.plan[name]) for kind, name in action.link.inputs.items()}
        ingredients = action.consuming({kind: artifact.content for kind, artifact in artifacts.items()})
        key = digest_of(ingredients)
        self._warn_of_place(action)
        work = Work(
            action=action,
            artifacts=artifacts,
            ingredients=ingredients,
            key=key,
            workspace=self.workspace,
            shared=self._is_shared(action),
            # What this process has just made need not be made again for another recipe that comes to the same.
            force=force and key not in self.workspace.made,
            failures=lambda: self._failures(action),
            log=lambda line: self._log.write(action.kind, line),
            log_name=self.log_name,
            progress=lambda message, fraction=None: self.display.progress(
                action.recipe, action.kind, message, fraction
            ),
        )
        try:
            artifact, cached = self.workspace.executor.make(work)
        except PipelineError as error:
            self._log.write(action.kind, f"failed: {error}")
            raise
        self.workspace.made.add(artifact.key)
        if not cached and work.shared:
            self.workspace.share(artifact)
        return self._finish(action, artifact, cached=cached)

    def _is_shared(self, action: Action) -> bool:
        """Whether other machines may see its artifact."""
        inputs = (self.plan[name] for name in action.link.inputs.values())
        return action.stage.shared(action.config) and all(map(self._is_shared, inputs))

    def _warn_of_place(self, action: Action) -> None:
        """Say that a recipe's file, which may be anybody's, names the machine that is connected to."""
        place = getattr(action.config, "run_on", None)
        written = self.plan.sources.file_location(("stages", action.kind, "run_on")) if place else ""
        if written:
            text = f"{written}: the recipe connects to {place}, and believes what answers there"
            self._log.write(action.kind, f"warning: {text}")
            sys.stderr.write(f"warning: {escape.message(text)}\n")

    def publish(self) -> None:
        """Fill the build folder from the artifacts of all stages, and complete the report. Raises PipelineError."""
        store = self.workspace.store
        lock = "build-" + digest_of(str(self.folder))
        # By role: the last that provides one is the one that counts.
        artifacts = Folders({action.stage.role: self._artifact(action, action) for action in self.plan})
        additions = {
            "stages": [vars(self.results[action.kind]) for action in self.plan],
            "tools": {name: tool.version for action in self.plan for name, tool in sorted(action.tools.items())},
        }
        command = repeat_command(self.plan.loaded, self.workspace.project) if self.plan.loaded is not None else ""
        try:
            with store.locked(lock):
                self._build_folder()  # a link may have come meanwhile
                self.report = publish(artifacts, self.folder, additions, command)
        except OSError as error:
            if is_disk_full(error):
                raise DiskFullError(f"no space left for {self.folder}", hint="free some and run again") from error
            limit = system_limit(error)
            if limit is not None:
                raise PipelineError(f"{self.folder} cannot be written: {limit[0]}", hint=limit[1]) from error
            raise PipelineError(f"{self.folder} cannot be written: {error.strerror}") from error
        for kind, done in list(self._done.items()):
            # What came here for this may have been made again.
            self._as_it_is(kind, done)
        self._log.write("publish", f"wrote {self.folder.relative_to(self.workspace.build)}")

    def _build_folder(self) -> Path:
        """The folder of the run's results. Raises PipelineError where a link leads out of the build folder."""
        try:
            return below(self.workspace.build, self.plan.folder)
        except OSError as error:
            raise PipelineError(f"{error.filename} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """End the log and note which keys this recipe had, for `doit explain`. May be called twice."""
        if self._closed:
            return
        self._closed = True
        if self.results:
            keys = {kind: result.key for kind, result in self.results.items()}
            self.workspace.store.runs.note(self.plan.recipe, self.plan.target, keys, self.plan.changes)
        self.workspace.store.digests.save()
        self.workspace.planner.imports.save()
        self._log.close()

    def _finish(self, action: Action, artifact: Artifact, *, cached: bool) -> StageResult:
        remote = artifact.key in self.workspace.fetched
        result = StageResult(action.kind, artifact.key, cached, artifact.seconds, cached and remote)
        self.results[action.kind] = result
        self._done[action.kind] = artifact
        if cached:
            self.workspace.store.mark_used(artifact)
            where = "from the remote store" if result.remote else "cached"
            self._log.write(action.kind, f"{where}; made {artifact.manifest['created']}, key {artifact.key}")
            for line in artifact.log.splitlines():
                self._log.write(action.kind, line)
        else:
            if self._is_as_before(action, artifact):
                self.unchanged.add(action.kind)
            same = ", same bytes as before" if action.kind in self.unchanged else ""
            self._log.write(action.kind, f"done in {artifact.seconds:.1f} s{same}")
        return result

    def _is_as_before(self, action: Action, artifact: Artifact) -> bool:
        """Whether an artifact that was just made has the bytes of the one that the recipe had last."""
        store = self.workspace.store
        if self._last is None:
            last = store.runs.find(self.plan.recipe, self.plan.target)
            self._last = {} if last is None else last.keys
        before = self._last.get(action.kind, artifact.key)
        manifest = None if before == artifact.key else store.manifest(before)
        return manifest is not None and content_of(manifest) == artifact.content

    def _find(self, action: Action) -> Artifact | None:
        """The action's artifact: what this session has of it, or the store; None when a stage has to run for it."""
        done = self._done.get(action.kind)
        if done is not None:
            return self._as_it_is(action.kind, done)
        contents = {}
        for kind, name in action.link.inputs.items():
            consumed = self._find(self.plan[name])
            if consumed is None:
                return None
            contents[kind] = consumed.content
        found = self.workspace.find(digest_of(action.consuming(contents)))
        if found is not None:
            self._finish(action, found, cached=True)
        return found

    def _as_it_is(self, kind: str, done: Artifact) -> Artifact:
        """What this session has of a stage, or what took its place when it came here."""
        found = here_or_elsewhere(done)
        if found is not done:
            self._done[kind] = found
            self.results[kind] = replace(self.results[kind], key=found.key)
        return found

    def _artifact(self, reader: Action, action: Action) -> Artifact:
        """The artifact of a consumed stage, which ran before in this session, or in an earlier run."""
        artifact = self._find(action)
        if artifact is None:
            kind = action.kind
            raise PipelineError(f"{reader.kind}: the artifact of '{kind}' is not in the store; run {kind} first")
        return artifact

    @contextlib.contextmanager
    def _failures(self, action: Action) -> Iterator[None]:
        """Turns what a stage raises into the pipeline's errors."""
        kind = action.kind
        try:
            yield
        except (PipelineError, KeyboardInterrupt, GeneratorExit):
            raise
        except StageError as error:
            raise self.plan.sources.stage_failure(kind, error, action.stage.kind) from error
        except BaseException as error:  # also sys.exit, and a panic of a library in Rust
            if is_disk_full(error):
                raise
            self.log_traceback()
            outside = environment_error(error, self.workspace.project.installation)
            if outside is None:
                found = {name: (role, self._find(self.plan[name])) for role, name in action.link.inputs.items()}
                outside = plugin_error(error, plugins_of(self.workspace.project), found, self.log_name)
            if outside is not None:
                raise StageFailed(kind, outside) from error
            raise StageCrashed(kind, error, self.log_name, action.model_source) from error


class _RunLog:
    """log.txt: seconds since the start, stage, line. Opened with the first line; skipped when it cannot be written."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self._plan = plan
        self._lock = threading.Lock()
        self._stream: Any = None
        self._broken = False
        self._start = time.monotonic()

    def write(self, kind: str, line: str) -> None:
        """Add a line; safe from threads."""
        with self._lock:
            if self._stream is None and not self._broken:
                self._open()
            if self._stream is not None:
                for part in line.rstrip("\n").split("\n"):
                    self._put(f"{time.monotonic() - self._start:9.3f} {kind:9} | {escape.log_line(part)}\n")

    def close(self) -> None:
        """End the log."""
        with self._lock, contextlib.suppress(OSError):
            if self._stream is not None:
                self._stream.close()
            self._stream, self._broken = None, True

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A new file, not the old one truncated: another run may still be writing that.
            self.path.unlink(missing_ok=True)
            self._stream = self.path.open("w", encoding="utf-8", buffering=1)
        except OSError:
            self._broken = True
            return
        started = datetime.now().astimezone().isoformat(timespec="seconds")
        self._put(f"recipe {escape.log_line(self._plan.recipe)}, target {self._plan.target}, {started}\n")
        self._put(f"{platform.platform()}, Python {platform.python_version()}\n")
        for action in self._plan:
            for tool in action.tools.values():
                uses = f"{action.kind} uses {tool.name} {tool.version} {tool.path}".rstrip()
                self._put(f"{escape.log_line(uses)}\n")

    def _put(self, text: str) -> None:
        # A full disk must not hide the message about the full disk.
        with contextlib.suppress(OSError):
            self._stream.write(text)
