"""What a worker does: one stage, or a part of a measurement. Called by dask.distributed, in the worker's project.

Values that come back are plain, errors too: an exception of a plug-in may be none on the other machine.
"""

from __future__ import annotations

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
from pipeline.distributed.code import PIPELINE, own_code, plug_in_code
from pipeline.distributed.request import differences, told
from pipeline.distributed.values import read
from pipeline.errors import PipelineError, RecipeError, describe_unexpected, environment_error
from pipeline.keys.package_groups import install_group
from pipeline.keys.planner import Action
from pipeline.keys.tools import Tools
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import declare_operators, plugin_error
from pipeline.plugins.registry import Registry, registry_of
from pipeline.project import Project, current_project
from pipeline.recipes.chain import Link
from pipeline.recipes.recipe import rebind_plugin_model
from pipeline.recipes.targets import load_targets
from pipeline.remote.health import retry_disabled_stores
from pipeline.runs.cache import StoreCache
from pipeline.runs.executor import run_stage, stage_logger
from pipeline.runs.workspace import Workspace
from stages.backends.targets.spec import Target
from stages.base import StageError, Tool
from stages.support.system.installation import INSTALLATION
from stages.support.system.system_limits import is_disk_full

# Seconds between two lines of progress.
_OFTEN = 0.3
# Seconds until what another machine left is seen here.
_SEEN = 10

Answer = dict[str, Any]
Seen = TypeVar("Seen")


class _Refused(Exception):
    """This machine would make something else; the message is what differs."""


class _Differs(Exception):
    """This machine's code is another."""


class _Lost(Exception):
    """What a stage reads is not to be had here; `missing` has its keys, `remote` what is asked for it."""

    name = "lost"

    def __init__(self, message: str, missing: list[str], remote: str) -> None:
        super().__init__(message)
        self.missing, self.remote = missing, remote


class _Other(_Lost):
    """What a stage reads has other bytes here than where the work comes from."""

    name = "other"


def greet() -> Answer:
    """The code of this worker, by the names of its files."""
    return {"code": own_code()}


def perform(request: Mapping[str, Any]) -> Answer:
    """Run a stage, unless a store that this machine sees has its artifact: `{key, cached, remote}`, or an error.

    `remote` is the remote store that the artifact was sent to, '' for none; errors are as below.
    """
    retry_disabled_stores()
    with _workspace() as workspace:
        return _answered(lambda: _perform(request, workspace), workspace, request)


def measure(request: Mapping[str, Any]) -> Answer:
    """Call a function of the stages on the values of a request: `{result}`, pickled, or an error as below."""

    def work() -> Answer:
        _check_pipeline(request)
        # Before what was sent is read: other code may not be able to.
        _check_code(request)
        project = _workspace().project
        values, targets = _unpickled(request["values"], project)
        _check_plug_ins(request, targets, project)
        declare_operators(project)
        tools = Tools(current_project().root / ".firmline" / "tools.json")
        wanted = [Tool(**one) for one in request["tools"]]
        found = {tool.name: tools.identify(tool).version for tool in wanted}
        if wrong := differences({"tools": request["versions"]}, {"tools": found}):
            raise _Refused(told(wrong))
        module, _, name = request["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        result = pickle.dumps(function(*values))
        # It may have loaded, or compiled, what changed meanwhile.
        _check_code(request)
        _check_plug_ins(request, targets, project)
        return {"result": result}

    return _answered(work, None, request)


def _workspace() -> Workspace:
    return Workspace(install=install_group)


def _registry(workspace: Workspace) -> Registry:
    return registry_of(workspace.project)


def _answered(work: Callable[[], Answer], workspace: Workspace | None, request: Mapping[str, Any]) -> Answer:
    """What `work` gives, or `{error, message, hint, …}`.

    `error` is stage, pipeline, refused, lost, other, differs or crash. One that is `lost`, or `other` bytes, has the
    `missing` keys, and the `remote` store that was asked for them ('': none); one that `differs` has the `code` of this
    worker instead.
    """
    try:
        return work()
    except _Refused as error:
        return {"error": "refused", "message": str(error)}
    except _Lost as error:
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
    return {"error": "stage", "message": error.message, "hint": error.hint, "at": list(error.at)}


def _perform(request: Mapping[str, Any], workspace: Workspace) -> Answer:
    _check_pipeline(request)
    registry = _registry(workspace)
    kind = request["stage"]
    if kind not in registry:
        raise _Refused(f"there is no stage '{kind}' there")
    stage = registry[kind]
    (options, model, target), _ = _unpickled(request["objects"], workspace.project)
    try:
        model = rebind_plugin_model(model, registry.models)
    except RecipeError as error:
        raise _Refused(f"{error.message} there") from error
    # They were checked when the recipe was read.
    config = stage.config.model_construct(**options)
    known = workspace.planner.identify(stage, config, model, target)
    if wrong := differences(known.ingredients, request["ingredients"]):
        raise _Refused(told(wrong))
    # A stage may call a file as it calls what it consumes.
    consumed = {key: role for role, key in request["inputs"].items()}
    there = _there(workspace, {**{key: name for name, (key, _) in request["files"].items()}, **consumed})
    artifacts = {role: there[key] for role, key in request["inputs"].items()}
    _check_content(artifacts, request["ingredients"]["inputs"], workspace)
    files = {name: there[key].files / file for name, (key, file) in request["files"].items()}
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
    artifact, cached = _made(action, artifacts, workspace, request)
    workspace.share(artifact)
    workspace.flush()
    remote = workspace.remote
    written = "" if remote is None or remote.settings.read_only else remote.settings.shown
    return {"key": artifact.key, "cached": cached, "remote": written}


def _made(
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
            # The store would take it for a failure of its own.
            raise _Raised from error

    try:
        return workspace.store.make(ingredients, write, recipe=action.recipe, force=bool(request["force"]))
    except _Raised as error:
        assert error.__cause__ is not None
        raise error.__cause__ from None


class _Raised(Exception):
    """A stage raised its cause."""


def seen(look: Callable[[], Seen | None], why_not: Callable[[], str]) -> Seen | None:
    """What another machine left in a store that both see: a network's disk may take some seconds to show it.

    Nobody waits once `why_not` knows why it will not come.
    """
    deadline = time.monotonic() + _SEEN
    while (found := look()) is None and not why_not() and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _there(workspace: Workspace, names: Mapping[str, str]) -> dict[str, Artifact]:
    """The artifacts of keys by these; `names` are what the keys are called. Raises _Lost."""
    found: dict[str, Artifact] = {}
    lost: dict[str, str] = {}
    for key in names:
        # Who waited for one has waited for all.
        look, why_not = partial(workspace.find, key), partial(workspace.fetch_error, key)
        artifact = look() if lost else seen(look, why_not)
        if artifact is None:
            lost[key] = workspace.fetch_error(key)
        else:
            found[key] = artifact
    if lost:
        remote = remote_of(workspace)
        nowhere = f"the remote store {remote} has it not" if remote else "it shares neither a store nor a remote store"
        why = next(filter(None, lost.values()), nowhere)
        message = f"cannot get what it reads ({', '.join(names[key] for key in lost)}): {why}"
        raise _Lost(message, list(lost), remote)
    return found


def _check_content(artifacts: Mapping[str, Artifact], contents: Mapping[str, str], workspace: Workspace) -> None:
    """Raises _Other before a stage runs whose key would be another than the one that is asked for."""
    other = [role for role, artifact in artifacts.items() if artifact.content != contents[role]]
    if other:
        message = f"has other bytes of what it reads ({', '.join(other)})"
        raise _Other(message, [artifacts[role].key for role in other], remote_of(workspace))


def remote_of(workspace: Workspace) -> str:
    """How messages call the remote store of a machine; '' for none."""
    return "" if workspace.remote is None else workspace.remote.settings.shown


def _check_pipeline(request: Mapping[str, Any]) -> None:
    """Also of a worker that came when the run had begun."""
    if digest_of(PIPELINE) != request["pipeline"]:
        raise _Differs


def _check_code(request: Mapping[str, Any]) -> None:
    if digest_of(own_code()) != request["code"]:
        raise _Differs


def _check_plug_ins(request: Mapping[str, Any], targets: list[Target], project: Project) -> None:
    if wrong := differences({"plug-in": plug_in_code(targets, project)}, {"plug-in": request["plug-ins"]}):
        raise _Refused(told(wrong))


def _at_home(target: Target, project: Project) -> Target:
    """The target with what goes with it where it lies on this machine."""
    if not (target.places or target.modules):
        return target
    own = load_targets(project).get(target.name)
    if own is None:
        raise _Refused(f"there is no target '{target.name}' there, and it has plug-ins")
    return target.model_copy(update={"places": own.places, "modules": own.modules})


def _unpickled(data: bytes, project: Project) -> tuple[Any, list[Target]]:
    try:
        return read(data, lambda target: _at_home(target, project))
    except _Refused:
        raise
    except Exception as error:
        raise _Refused(f"its code cannot read what this machine sends: {describe_unexpected(error)}") from error


class _Progress:
    """Tells the machine that waits what a stage is doing, not too often."""

    def __init__(self, topic: str, task: str) -> None:
        # Only the thread of the task can ask for it; stages tell from others too.
        self._worker = get_worker()
        self._topic, self._task, self._last = topic, task, 0.0

    def __call__(self, message: str, fraction: float | None = None) -> None:
        now = time.monotonic()
        if now - self._last >= _OFTEN:
            self._last = now
            self._worker.log_event(self._topic, {"task": self._task, "message": message, "fraction": fraction})
