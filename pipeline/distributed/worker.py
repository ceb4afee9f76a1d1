"""Functions that dask.distributed calls on a worker: run a stage, or call a function.

Answers are plain values, errors too: the client may not have the classes of a plug-in.
"""

import importlib
import pickle
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from distributed import get_worker

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.store import Artifact
from pipeline.distributed.code import PIPELINE, installed_code, plug_in_code
from pipeline.distributed.machine_differences import differences, in_one_line
from pipeline.distributed.values import loads
from pipeline.errors import PipelineError, RecipeError, describe_unexpected, environment_error
from pipeline.keys.package_groups import install_group
from pipeline.keys.planner import Action
from pipeline.keys.tools import Tools
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import declare_operators, plugin_error
from pipeline.plugins.registry import Registry, registry_of
from pipeline.project import Project, current_project
from pipeline.recipes.model_entry import rebind_plugin_model
from pipeline.recipes.stage_sequence import Link
from pipeline.recipes.targets import load_targets
from pipeline.remote.health import retry_disabled_stores
from pipeline.runs.cache import StoreCache
from pipeline.runs.executor import run_stage, stage_logger
from pipeline.runs.workspace import Workspace
from stages.backends.targets.spec import Target
from stages.base import StageError, Tool
from stages.support.messages.stage_error import DoesNotFit
from stages.support.system.installation import INSTALLATION
from stages.support.system.system_limits import is_disk_full

# Seconds between progress messages.
_PROGRESS_INTERVAL = 0.3
# Seconds until files of another machine are visible on a shared disk.
_VISIBLE_TIMEOUT = 10

Answer = dict[str, Any]
Value = TypeVar("Value")


class _Refused(Exception):
    """This machine would make another result; the message says what differs."""


class _Differs(Exception):
    """This machine's code differs from the client's."""


class _MissingInputs(Exception):
    """Inputs cannot be fetched; `missing` has their keys, `remote` is the asked remote store."""

    name = "lost"

    def __init__(self, message: str, missing: list[str], remote: str) -> None:
        super().__init__(message)
        self.missing, self.remote = missing, remote


class _OtherInputs(_MissingInputs):
    """Inputs have other bytes than on the client."""

    name = "other"


def greet() -> Answer:
    """Return the digests of this worker's code."""
    return {"code": installed_code()}


def perform(request: Mapping[str, Any]) -> Answer:
    """Run a stage unless a store has its artifact. Returns `{key, cached, remote}` or an error.

    `remote` is the remote store that the artifact was sent to, or ''. For errors see _catch_errors.
    """
    retry_disabled_stores()
    with _workspace() as workspace:
        return _catch_errors(lambda: _perform(request, workspace), workspace, request)


def measure(request: Mapping[str, Any]) -> Answer:
    """Call a function of the stages with the request's values. Returns `{result}` or an error.

    `result` is pickled. For errors see _catch_errors.
    """

    def work() -> Answer:
        _check_pipeline(request)
        # Check before unpickling: other code may not be able to read the values.
        _check_code(request)
        project = _workspace().project
        values, targets = _unpickle(request["values"], project)
        _check_plug_ins(request, targets, project)
        declare_operators(project)
        tools = Tools(current_project().root / ".firmline" / "tools.json")
        wanted_tools = [Tool(**values_of_tool) for values_of_tool in request["tools"]]
        versions = {tool.name: tools.identify(tool).version for tool in wanted_tools}
        if wrong := differences({"tools": request["versions"]}, {"tools": versions}):
            raise _Refused(in_one_line(wrong))
        module, _, name = request["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        result = pickle.dumps(function(*values))
        # Check again: the function may have loaded or compiled changed files.
        _check_code(request)
        _check_plug_ins(request, targets, project)
        return {"result": result}

    return _catch_errors(work, None, request)


def _workspace() -> Workspace:
    return Workspace(install=install_group)


def _registry(workspace: Workspace) -> Registry:
    return registry_of(workspace.project)


def _catch_errors(work: Callable[[], Answer], workspace: Workspace | None, request: Mapping[str, Any]) -> Answer:
    """Return the result of `work`, or `{error, message, hint, …}`.

    `error` is stage, pipeline, refused, lost, other, differs or crash. `lost` (missing inputs) and `other` (other
    bytes) have the `missing` keys and the asked `remote` store (or ''); `differs` has the `code` of this worker
    instead.
    """
    try:
        return work()
    except _Refused as error:
        return {"error": "refused", "message": str(error)}
    except _MissingInputs as error:
        return {"error": error.name, "message": str(error), "missing": error.missing, "remote": error.remote}
    except _Differs:
        return {"error": "differs", **greet()}
    except PipelineError as error:
        return {"error": "pipeline", "message": error.message, "hint": error.hint}
    except StageError as error:
        return _stage_error(error)
    except Exception as error:
        text = traceback.format_exc()
        limit = environment_error(error, INSTALLATION)
        if limit is None and workspace is not None and isinstance(request.get("stage"), str):
            limit = plugin_error(error, plugins_of(workspace.project), {}, str(request.get("log_name")))
        if limit is not None:
            return {**_stage_error(limit), "traceback": text}
        return {"error": "crash", "message": describe_unexpected(error), "traceback": text}


def _stage_error(error: StageError) -> Answer:
    answer = {"error": "stage", "message": error.message, "hint": error.hint, "at": list(error.at)}
    return {**answer, "does_not_fit": isinstance(error, DoesNotFit)}


def _perform(request: Mapping[str, Any], workspace: Workspace) -> Answer:
    _check_pipeline(request)
    registry = _registry(workspace)
    kind = request["stage"]
    if kind not in registry:
        raise _Refused(f"it has no stage '{kind}'")
    stage = registry[kind]
    (options, model, target), _ = _unpickle(request["objects"], workspace.project)
    try:
        model = rebind_plugin_model(model, registry.models)
    except RecipeError as error:
        raise _Refused(f"{error.message} on it") from error
    # The options were validated when the recipe was read.
    config = stage.config.model_construct(**options)
    known = workspace.planner.identify(stage, config, stage.inputs(config, model, target), target)
    if wrong := differences(known.ingredients, request["ingredients"]):
        raise _Refused(in_one_line(wrong))
    # A file and a consumed artifact may have the same name.
    consumed = {key: role for role, key in request["inputs"].items()}
    inputs = _input_artifacts(workspace, {**{key: name for name, (key, _) in request["files"].items()}, **consumed})
    artifacts = {role: inputs[key] for role, key in request["inputs"].items()}
    _check_content(artifacts, request["ingredients"]["inputs"], workspace)
    files = {name: inputs[key].files / file for name, (key, file) in request["files"].items()}
    action = Action(
        link=Link(request["name"], stage, {}),
        config=config,
        recipe=request["recipe"],
        model=model,
        target=target,
        identity="",
        ingredients=request["ingredients"],
        files=files,
        tools=known.tools,
        required_tools=known.required_tools,
        code=known.code,
    )
    artifact, cached = _run_action(action, artifacts, workspace, request)
    workspace.share(artifact)
    workspace.flush()
    remote = workspace.remote
    written = "" if remote is None or remote.settings.read_only else remote.settings.shown
    return {"key": artifact.key, "cached": cached, "remote": written}


def _run_action(
    action: Action, artifacts: Mapping[str, Artifact], workspace: Workspace, request: Mapping[str, Any]
) -> tuple[Artifact, bool]:
    progress = _Progress(request["topic"], request["task"])
    ingredients = action.consuming({role: artifact.content for role, artifact in artifacts.items()})

    def write(out: Path, keep: Callable[[str], None]) -> None:
        progress("starts")
        try:
            run_stage(
                action,
                artifacts,
                workspace.planner,
                workspace.project,
                out,
                log=stage_logger(keep),
                progress=progress,
                cache=StoreCache(workspace, action.recipe),
            )
        except OSError as error:
            if is_disk_full(error):
                raise
            # The store would handle it as its own error.
            raise _Raised from error

    try:
        return workspace.store.make(ingredients, write, recipe=action.recipe, force=bool(request["force"]))
    except _Raised as error:
        assert error.__cause__ is not None
        raise error.__cause__ from None


class _Raised(Exception):
    """Carries an exception of a stage as its cause."""


def wait_until_visible(look: Callable[[], Value | None], failure: Callable[[], str]) -> Value | None:
    """Return a value once `look` finds it; a shared disk may show new files after seconds.

    Stops waiting when `failure` gives a reason. Returns None then, and after the timeout.
    """
    deadline = time.monotonic() + _VISIBLE_TIMEOUT
    while (value := look()) is None and not failure() and time.monotonic() < deadline:
        time.sleep(0.2)
    return value


def _input_artifacts(workspace: Workspace, names: Mapping[str, str]) -> dict[str, Artifact]:
    """Return the artifacts of these keys; `names` are for messages. Raises _MissingInputs."""
    artifacts: dict[str, Artifact] = {}
    lost: dict[str, str] = {}
    for key in names:
        # After waiting for one artifact, the others are visible too.
        look, failure = partial(workspace.find, key), partial(workspace.fetch_error, key)
        artifact = look() if lost else wait_until_visible(look, failure)
        if artifact is None:
            lost[key] = workspace.fetch_error(key)
        else:
            artifacts[key] = artifact
    if lost:
        remote = remote_of(workspace)
        nowhere = f"the remote store {remote} does not have it" if remote else "it shares no store with this machine"
        reason = next(filter(None, lost.values()), nowhere)
        message = f"cannot get its inputs ({', '.join(names[key] for key in lost)}): {reason}"
        raise _MissingInputs(message, list(lost), remote)
    return artifacts


def _check_content(artifacts: Mapping[str, Artifact], contents: Mapping[str, str], workspace: Workspace) -> None:
    """Raise _OtherInputs if artifacts have other bytes than in the requested key."""
    other = [role for role, artifact in artifacts.items() if artifact.content != contents[role]]
    if other:
        message = f"has other bytes in its inputs ({', '.join(other)})"
        raise _OtherInputs(message, [artifacts[role].key for role in other], remote_of(workspace))


def remote_of(workspace: Workspace) -> str:
    """Return the name of a machine's remote store for messages; '' for none."""
    return "" if workspace.remote is None else workspace.remote.settings.shown


def _check_pipeline(request: Mapping[str, Any]) -> None:
    """Raise _Differs for other pipeline code, also of a worker that joined during the run."""
    if digest_of(PIPELINE) != request["pipeline"]:
        raise _Differs


def _check_code(request: Mapping[str, Any]) -> None:
    """Raise _Differs for other code."""
    if digest_of(installed_code()) != request["code"]:
        raise _Differs


def _check_plug_ins(request: Mapping[str, Any], targets: list[Target], project: Project) -> None:
    """Raise _Refused for other plug-in code."""
    if wrong := differences({"plug-in": plug_in_code(targets, project)}, {"plug-in": request["plug-ins"]}):
        raise _Refused(in_one_line(wrong))


def _rebind_target(target: Target, project: Project) -> Target:
    """Return the target with the paths of its plug-ins on this machine."""
    if not (target.places or target.modules):
        return target
    local_target = load_targets(project).get(target.name)
    if local_target is None:
        raise _Refused(f"it has no target '{target.name}' with its plug-ins")
    return target.model_copy(update={"places": local_target.places, "modules": local_target.modules})


def _unpickle(data: bytes, project: Project) -> tuple[Any, list[Target]]:
    try:
        return loads(data, lambda target: _rebind_target(target, project))
    except _Refused:
        raise
    except Exception as error:
        raise _Refused(f"its code cannot read this machine's request: {describe_unexpected(error)}") from error


class _Progress:
    """Sends a stage's progress to the client, with a limited rate."""

    def __init__(self, topic: str, task: str) -> None:
        # Only the task's thread can get the worker; stages report progress from other threads too.
        self._worker = get_worker()
        self._topic, self._task, self._last = topic, task, 0.0

    def __call__(self, message: str, fraction: float | None = None) -> None:
        """Send a message unless the last one is too recent."""
        now = time.monotonic()
        if now - self._last >= _PROGRESS_INTERVAL:
            self._last = now
            self._worker.log_event(self._topic, {"task": self._task, "message": message, "fraction": fraction})
