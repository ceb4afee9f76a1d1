"""One run of one recipe: find finished actions, run the others, fill the build folder."""

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.manifest import content_of
from pipeline.artifacts.store import Artifact
from pipeline.errors import DiskFullError, PipelineError, StageCrashed, StageFailed, environment_error
from pipeline.keys.planner import Action, Plan
from pipeline.keys.repeat_command import completed_command, repeat_command
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import plugin_error
from pipeline.runs.executor import Executor, Local, Work
from pipeline.runs.preflight import PreflightCheck
from pipeline.runs.publish import REPORT, publish
from pipeline.runs.record_measurement import record_measurement
from pipeline.runs.run_log import RunLog
from pipeline.runs.worker_artifacts import ArtifactFolders, local_if_fetched
from pipeline.runs.workspace import Workspace
from stages.base import StageError
from stages.support.messages import escape
from stages.support.system.path_below import path_below
from stages.support.system.pathname import describe_path
from stages.support.system.system_limits import is_disk_full, system_limit


class Display(Protocol):
    """Shows the progress of running stages."""

    def progress(self, recipe: str, kind: str, message: str, fraction: float | None) -> None:
        """Show what a stage does, and how far it is (0 to 1) if known."""


class _NoDisplay:
    def progress(self, recipe: str, kind: str, message: str, fraction: float | None) -> None:
        """Show nothing."""


@dataclass(frozen=True)
class StageResult:
    """The result of one stage. `seconds` is the duration of its run, now or earlier.

    `remote`: it is cached, and this run fetched it from the remote store.
    """

    kind: str
    key: str
    cached: bool
    seconds: float
    remote: bool = False


class Session:
    """Runs the actions of one plan, up to the stage `until` ('': all).

    Uses an executor, by default in this process. Methods may be called from several threads, each action from one.
    log.txt gets the lines that stages log, for a cached stage those of its run. With `record`, the recipe's keys
    are noted for `doit explain`.
    """

    def __init__(
        self,
        workspace: Workspace,
        plan: Plan,
        display: Display | None = None,
        until: str = "",
        executor: Executor | None = None,
        *,
        record: bool = True,
    ) -> None:
        self.workspace = workspace
        self._executor = executor or Local()
        self.plan = plan
        self.folder = self._build_folder()
        self.results: dict[str, StageResult] = {}
        # Stages that ran and made the same bytes as before.
        self.unchanged: set[str] = set()
        self.report: dict[str, Any] | None = None
        self._done: dict[str, Artifact] = {}
        self._last: Mapping[str, str] | None = None
        self._closed = False
        self._preflight = PreflightCheck(plan, workspace.root, until)
        self._until = until
        self._record = record
        self.display = display or _NoDisplay()
        self._log = RunLog(self.folder / "log.txt", plan)

    @property
    def log_name(self) -> str:
        """The log's name in messages: relative to the project if it is inside."""
        return self.workspace.display_path(self._log.path)

    def log_traceback(self) -> None:
        """Write the traceback of the current exception to the log."""
        for line in traceback.format_exc().splitlines():
            self._log.write("error", line)

    @property
    def folders(self) -> ArtifactFolders:
        """The folders of the artifacts, by stage."""
        return ArtifactFolders(dict(self._done))

    def artifact(self, kind: str) -> Artifact:
        """Return the artifact of a stage that is done."""
        return self._done[kind]

    def is_done(self, action: Action) -> bool:
        """Return whether the store has the action's artifact and its inputs, unaltered."""
        return self._find(action) is not None

    def preflight_check(self) -> None:
        """Check the build folder and let the stages report certain failures. Raises PipelineError.

        Skipped if all artifacts exist: their stages have checked this data and model before.
        """
        if not self._until:
            self._check_folder()
        if not self._done and self._is_stored():
            return
        try:
            self._preflight.run(dict(self._done))
        except PipelineError as error:
            if error.__cause__ is not None and not isinstance(error.__cause__, StageError):
                self.log_traceback()
            self._log.write("preflight", f"failed: {error}")
            raise

    def _is_stored(self) -> bool:
        """Return whether the local store has all artifacts of this session."""
        contents: dict[str, str] = {}
        for action in self.plan.actions:
            inputs = {kind: contents[name] for kind, name in action.link.inputs.items()}
            artifact = self.workspace.store.find(digest_of(action.consuming(inputs)))
            if artifact is None:
                return False
            if action.kind == self._until:
                break
            contents[action.kind] = artifact.content
        return True

    def _check_folder(self) -> None:
        """Raise PipelineError if the build folder cannot be created or written."""
        place = self.folder
        while place != place.parent and not os.path.lexists(place):
            place = place.parent
        shown = self.workspace.display_path(place)
        if not place.is_dir():
            kind = describe_path(place) or "a file"
            message = f"{shown} is {kind}; the build folder is {self.workspace.display_path(self.folder)}"
            raise PipelineError(message, hint="move it away")
        if not os.access(place, os.W_OK | os.X_OK):
            raise PipelineError(
                f"{shown} cannot be written; the build folder is {self.workspace.display_path(self.folder)}"
            )

    def run(self, action: Action, *, force: bool = False, shared: bool = False) -> StageResult:
        """Make the action's artifact unless the store has it; `force` always makes it.

        A `shared` action (used by another recipe) is made even if a later stage of this recipe is certain to fail.
        Raises StageFailed, StageCrashed (the log has its traceback), StoreError.
        """
        if not force and (done := self.results.get(action.kind)) is not None:
            return done
        if not shared:
            for name in action.link.inputs.values():
                self._artifact(action, self.plan[name])
            self.preflight_check()
        # Artifacts that were fetched meanwhile may have other bytes than before.
        artifacts = {kind: self._artifact(action, self.plan[name]) for kind, name in action.link.inputs.items()}
        ingredients = action.consuming({kind: artifact.content for kind, artifact in artifacts.items()})
        key = digest_of(ingredients)
        self._warn_of_endpoint(action)
        work = Work(
            action=action,
            artifacts=artifacts,
            ingredients=ingredients,
            key=key,
            workspace=self.workspace,
            shared=self._is_shared(action),
            # Do not repeat an action that this process has just run for another recipe.
            force=force and key not in self.workspace.made_keys,
            convert_errors=lambda: self._convert_errors(action),
            log=lambda line: self._log.write(action.kind, line),
            log_name=self.log_name,
            progress=lambda message, fraction=None: self.display.progress(
                action.recipe, action.kind, message, fraction
            ),
        )
        try:
            artifact, cached = self._executor.make(work)
        except PipelineError as error:
            self._log.write(action.kind, f"failed: {error}")
            raise
        self.workspace.made_keys.add(artifact.key)
        if not cached and work.shared:
            self.workspace.share(artifact)
        return self._finish(action, artifact, cached=cached)

    def _is_shared(self, action: Action) -> bool:
        """Return whether other machines may see the artifact."""
        inputs = (self.plan[name] for name in action.link.inputs.values())
        return action.stage.shared(action.config) and all(map(self._is_shared, inputs))

    def _warn_of_endpoint(self, action: Action) -> None:
        """Warn if `run_on` comes from a recipe file: the endpoint is untrusted."""
        endpoint = getattr(action.config, "run_on", None)
        location = self.plan.sources.file_location(("stages", action.kind, "run_on")) if endpoint else ""
        if location:
            text = f"{location}: the recipe connects to {endpoint}, which may not be trusted"
            self._log.write(action.kind, f"warning: {text}")
            sys.stderr.write(f"warning: {escape.message(text)}\n")

    def publish(self) -> None:
        """Fill the build folder from the artifacts and complete the report. Raises PipelineError."""
        store = self.workspace.store
        lock = "build-" + digest_of(str(self.folder))
        # By role: the last stage with a role provides it.
        artifacts = ArtifactFolders({action.stage.role: self._artifact(action, action) for action in self.plan})
        additions = {
            "stages": [vars(self.results[action.kind]) for action in self.plan],
            "tools": {name: tool.version for action in self.plan for name, tool in sorted(action.tools.items())},
        }
        loaded, project = self.plan.loaded, self.workspace.project
        command = repeat_command(loaded, project) if loaded is not None else ""
        problem: PipelineError | None = None
        try:
            with store.locked(f"silicon-{digest_of(str(project.root))}"):
                additions["recorded"] = self._record_measurement(artifacts)
        except PipelineError as error:  # publish first: no run repeats a measurement
            problem = error

        def complete(advised: str) -> str:
            return completed_command(advised, loaded, project) if loaded is not None else ""

        try:
            with store.locked(lock):
                self._build_folder()  # check again: a link may have appeared
                self.report = publish(artifacts, self.folder, additions, command, complete)
        except OSError as error:
            if is_disk_full(error):
                raise DiskFullError(
                    f"no space left for {self.folder}", hint="delete some files and run again"
                ) from error
            limit = system_limit(error)
            if limit is not None:
                raise PipelineError(f"{self.folder} cannot be written: {limit[0]}", hint=limit[1]) from error
            raise PipelineError(f"{self.folder} cannot be written: {error.strerror}") from error
        for kind, done in list(self._done.items()):
            # An artifact that was fetched for this may have been made again.
            self._current(kind, done)
        self._log.write("publish", f"wrote {self.folder.relative_to(self.workspace.build)}")
        if problem is not None:
            raise problem

    def _record_measurement(self, artifacts: Mapping[str, Path]) -> str:
        """Add a run on a board to the project's silicon.yaml, and return the report's line.

        Raises PipelineError.
        """
        if not any(getattr(action.config, "run_on", None) for action in self.plan) or "report" not in artifacts:
            return ""
        report = json.loads((artifacts["report"] / REPORT).read_text(encoding="utf-8"))
        firmware, project = artifacts["compile"] / "firmware.elf", self.workspace.project
        compilers = [action.tools["compiler"] for action in self.plan if "compiler" in action.tools]
        compiler = next((f"{Path(tool.path).name} {tool.version}" for tool in compilers if tool.path), "not stated")
        return record_measurement(report, firmware, project, self.plan.recipe, self.plan.changes, compiler)

    def _build_folder(self) -> Path:
        """Return the build folder. Raises PipelineError for a link that leads out of build/."""
        try:
            return path_below(self.workspace.build, self.plan.folder)
        except OSError as error:
            raise PipelineError(f"{error.filename} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """End the log and note the recipe's keys. May be called twice."""
        if self._closed:
            return
        self._closed = True
        if self.results and self._record:
            keys = {kind: result.key for kind, result in self.results.items()}
            self.workspace.store.runs.note(self.plan.recipe, self.plan.target, keys, self.plan.changes)
        self.workspace.store.digests.save()
        self.workspace.planner.imports.save()
        self._log.close()

    def _finish(self, action: Action, artifact: Artifact, *, cached: bool) -> StageResult:
        remote = artifact.key in self.workspace.fetched_keys
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
            if self._is_unchanged(action, artifact):
                self.unchanged.add(action.kind)
            same = ", same bytes as before" if action.kind in self.unchanged else ""
            self._log.write(action.kind, f"done in {artifact.seconds:.1f} s{same}")
        return result

    def _is_unchanged(self, action: Action, artifact: Artifact) -> bool:
        """Return whether a new artifact has the bytes of the recipe's last one."""
        store = self.workspace.store
        if self._last is None:
            last = store.runs.find(self.plan.recipe, self.plan.target)
            self._last = {} if last is None else last.keys
        before = self._last.get(action.kind, artifact.key)
        manifest = None if before == artifact.key else store.manifest(before)
        return manifest is not None and content_of(manifest) == artifact.content

    def _find(self, action: Action) -> Artifact | None:
        """Return the action's artifact of this session or the store; None if a stage has to run."""
        done = self._done.get(action.kind)
        if done is not None:
            return self._current(action.kind, done)
        contents = {}
        for kind, name in action.link.inputs.items():
            consumed = self._find(self.plan[name])
            if consumed is None:
                return None
            contents[kind] = consumed.content
        artifact = self.workspace.find(digest_of(action.consuming(contents)))
        if artifact is not None:
            self._finish(action, artifact, cached=True)
        return artifact

    def _current(self, kind: str, done: Artifact) -> Artifact:
        """Return the session's artifact of a stage, or the fetched one that replaced it."""
        current = local_if_fetched(done)
        if current is not done:
            self._done[kind] = current
            self.results[kind] = replace(self.results[kind], key=current.key)
        return current

    def _artifact(self, reader: Action, action: Action) -> Artifact:
        """Return the artifact of a consumed stage. Raises PipelineError if it is not in the store."""
        artifact = self._find(action)
        if artifact is None:
            kind = action.kind
            raise PipelineError(f"{reader.kind}: the artifact of '{kind}' is not in the store; run {kind} first")
        return artifact

    @contextlib.contextmanager
    def _convert_errors(self, action: Action) -> Iterator[None]:
        """Turn a stage's exceptions into the pipeline's errors."""
        kind = action.kind
        try:
            yield
        except (PipelineError, KeyboardInterrupt, GeneratorExit):
            raise
        except StageError as error:
            raise self.plan.sources.stage_failure(kind, error, action.stage.kind) from error
        except BaseException as error:  # includes SystemExit, and a panic of a Rust library
            if is_disk_full(error):
                raise
            self.log_traceback()
            known_error = environment_error(error, self.workspace.project.installation)
            if known_error is None:
                inputs = {name: (role, self._find(self.plan[name])) for role, name in action.link.inputs.items()}
                known_error = plugin_error(error, plugins_of(self.workspace.project), inputs, self.log_name)
            if known_error is not None:
                raise StageFailed(kind, known_error) from error
            raise StageCrashed(kind, error, self.log_name, action.model_source) from error
