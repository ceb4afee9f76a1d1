"""One run of one recipe: which actions are done, running those that are not, and leaving the build folder."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.store import READ, Artifact, content_of
from pipeline.errors import (
    DiskFullError,
    PipelineError,
    StageCrashed,
    StageFailed,
    surroundings,
)
from pipeline.keys.planner import Action, Plan
from pipeline.plugins.discovery import outside as plug_ins_of
from pipeline.plugins.importing import blamed, declare_operators
from pipeline.runs.foresight import Foresight
from pipeline.runs.held import Held
from pipeline.runs.publish import publish
from pipeline.runs.workspace import Workspace
from stages.base import Job, StageError
from stages.messages import escape
from stages.system.pathname import what_lies_at
from stages.system.system_limits import is_disk_full, system_limit

# Held by a running stage that is `exclusive`.
_EXCLUSIVE = threading.Lock()


class Display(Protocol):
    """Where the progress of running stages is shown."""

    def progress(self, recipe: str, kind: str, message: str, fraction: float | None) -> None:
        """A stage says what it is doing, and how far it is (0 to 1) if it knows."""


class _NoDisplay:
    def progress(self, recipe: str, kind: str, message: str, fraction: float | None) -> None:
        """Show nothing."""


@dataclass(frozen=True)
class StageResult:
    """How one stage went. `seconds` is how long it took when it ran, in this run or in an earlier one."""

    kind: str
    key: str
    cached: bool
    seconds: float


class Session:
    """Runs the actions of one plan, as far as the stage `until` ('': all).

    Methods may be called from several threads, each action from one.

    log.txt has what stages log as they log it, and for a cached stage what it logged when it ran.
    """

    def __init__(self, workspace: Workspace, plan: Plan, display: Display | None = None, until: str = "") -> None:
        self.workspace = workspace
        self.plan = plan
        self.folder = workspace.build / plan.folder
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
        return self.workspace.shown(self._log.path)

    def log_traceback(self) -> None:
        """Put the traceback of the exception being handled into the log."""
        for line in traceback.format_exc().splitlines():
            self._log.write("error", line)

    def is_done(self, action: Action) -> bool:
        """Whether the store has the action's artifact, and those that it follows from, whole and unaltered."""
        return self._find(action) is not None

    def foresee(self) -> None:
        """Let the stages say what they are sure to refuse; so does what lies where results go. Raises PipelineError."""
        if not self._until:
            self._check_folder()
        try:
            self._foresight.look({name: artifact.files for name, artifact in self._done.items()})
        except PipelineError as error:
            self._log.write("foresee", f"failed: {error}")
            raise

    def _check_folder(self) -> None:
        """Raises PipelineError when no folder can be made, or filled, where the results go."""
        place = self.folder
        while place != place.parent and not os.path.lexists(place):
            place = place.parent
        shown = self.workspace.shown(place)
        if not place.is_dir():
            there = what_lies_at(place) or "a file"
            message = f"{shown} is {there}; the results go into the folder {self.workspace.shown(self.folder)}"
            raise PipelineError(message, hint="move it away")
        if not os.access(place, os.W_OK | os.X_OK):
            raise PipelineError(f"{shown} cannot be written; the results go into {self.workspace.shown(self.folder)}")

    def run(self, action: Action, *, force: bool = False, shared: bool = False) -> StageResult:
        """Make the action's artifact unless the store has it; `force` makes it in any case.

        One that is `shared` with another recipe is made even where a later stage of this recipe is sure to refuse.
        Raises StageFailed, StageCrashed (its traceback is in the log), StoreError.
        """
        if not force and (done := self.results.get(action.kind)) is not None:
            return done
        artifacts = {kind: self._artifact(action, self.plan[name]) for kind, name in action.link.inputs.items()}
        if not shared:
            self.foresee()
        ingredients = action.consuming({kind: artifact.content for kind, artifact in artifacts.items()})
        key = digest_of(ingredients)
        held = Held(action, artifacts, self.workspace.planner)

        def write(out: Path, keep: Callable[[str], None]) -> None:
            def log(line: str) -> None:
                keep("\n".join(map(escape.log_line, line.split("\n"))))
                self._log.write(action.kind, line)

            self._log.write(action.kind, f"runs; key {key}")
            declare_operators(self.workspace.project)
            alone = _EXCLUSIVE if action.stage.exclusive else contextlib.nullcontext()
            with self._failures(action), alone, held.running(out.with_name(READ)) as files:
                action.stage.run(
                    Job(
                        config=action.config,
                        model=action.model,
                        target=action.target,
                        inputs={kind: artifact.files for kind, artifact in artifacts.items()},
                        out=out,
                        files=files,
                        tools=action.tools,
                        progress=lambda message, fraction=None: self.display.progress(
                            action.recipe, action.kind, message, fraction
                        ),
                        log=log,
                    )
                )

        try:
            artifact, cached = self.workspace.store.make(
                ingredients,
                write,
                recipe=action.recipe,
                # What this process has just made need not be made again for another recipe that comes to the same.
                force=force and key not in self.workspace.made,
                waiting=lambda: self.display.progress(
                    action.recipe, action.kind, "waits for another run that makes the same", None
                ),
            )
        except PipelineError as error:
            self._log.write(action.kind, f"failed: {error}")
            raise
        self.workspace.made.add(key)
        return self._finish(action, artifact, cached=cached)

    def publish(self) -> None:
        """Fill the build folder from the artifacts of all stages, and complete the report. Raises PipelineError."""
        store = self.workspace.store
        lock = "build-" + digest_of(str(self.folder))
        # By role: the last that provides one is the one that counts.
        artifacts = {action.stage.role: self._artifact(action, action).files for action in self.plan}
        additions = {
            "stages": [vars(self.results[action.kind]) for action in self.plan],
            "tools": {name: tool.version for action in self.plan for name, tool in sorted(action.tools.items())},
        }
        command = " ".join(["doit run", self.plan.recipe, *map(shlex.quote, self.plan.changes)])
        try:
            with store.locked(lock):
                self.report = publish(artifacts, self.folder, additions, command)
        except OSError as error:
            if is_disk_full(error):
                raise DiskFullError(f"no space left for {self.folder}", hint="free some and run again") from error
            limit = system_limit(error)
            if limit is not None:
                raise PipelineError(f"{self.folder} cannot be written: {limit[0]}", hint=limit[1]) from error
            raise PipelineError(f"{self.folder} cannot be written: {error.strerror}") from error
        self._log.write("publish", f"wrote {self.folder.relative_to(self.workspace.build)}")

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
        result = StageResult(action.kind, artifact.key, cached, artifact.seconds)
        self._done[action.kind] = artifact
        self.results[action.kind] = result
        if cached:
            self.workspace.store.mark_used(artifact)
            self._log.write(action.kind, f"cached; made {artifact.manifest['created']}, key {artifact.key}")
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
        found = self._done.get(action.kind)
        if found is not None:
            return found
        contents = {}
        for kind, name in action.link.inputs.items():
            consumed = self._find(self.plan[name])
            if consumed is None:
                return None
            contents[kind] = consumed.content
        found = self.workspace.store.find(digest_of(action.consuming(contents)))
        if found is not None:
            self._finish(action, found, cached=True)
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
        except PipelineError:
            raise
        except StageError as error:
            raise self.plan.sources.failed(kind, error, action.stage.kind) from error
        except Exception as error:
            if is_disk_full(error):
                raise
            self.log_traceback()
            outside = surroundings(error, self.workspace.project.installation)
            if outside is None:
                found = {name: (role, self._find(self.plan[name])) for role, name in action.link.inputs.items()}
                outside = blamed(error, plug_ins_of(self.workspace.project), found, self.log_name)
            if outside is not None:
                raise StageFailed(kind, outside) from error
            raise StageCrashed(kind, error, self.log_name) from error


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
