"""`doit watch NAME`: run recipes again whenever a file changes that they depend on.

Each run is a separate process, so that changed code of stages and plug-ins is loaded. The store decides which stages
run, so a change without effect runs nothing.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from pipeline.commands.command import Command, named_recipes
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import PipelineError
from pipeline.keys.package_groups import install_command, install_group
from pipeline.project import PROJECT_FILE, RECIPES, Project, current_project
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.recipe_arguments import check_recipe_arguments, recipes_and_stages
from pipeline.runs.workspace import Workspace
from stages.base import StageError
from stages.support.messages import escape
from stages.support.system.installation import INSTALLATION, is_clone
from stages.support.system.pathname import located

_GROUP, _PACKAGE = "watch", "watchfiles"
# Time and size of files.
FileTimes = dict[Path, tuple[int, int]]
_BUILT_IN = "<firmline>/"
_SHOWN = 3  # changed files in a line


class Watch(Command):
    """`doit watch NAME`."""

    name = "watch"
    group = "start"
    names = "recipes"
    examples = (("kws_rvp", "run again after each change"), ("kws_rvp target=cortex-m4,host", "on two targets"))
    variables = RECIPE_VARIABLES
    doc_purpose = "run recipes again when a file changes"
    doc_usage = "NAME... [target=… model=… set=…]"
    doc_description = (
        "Watches the recipe and those it extends, pipeline.yaml, model, data, and the code of stages, kernels and "
        "plug-ins. Ctrl-C ends it."
    )

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        names, values = named_recipes(self.name, named)
        project = current_project()
        check_recipe_arguments(names, [], project)
        if find_spec(_PACKAGE) is None and not install_group(_GROUP):
            raise PipelineError(
                f"doit watch needs the Python package {_PACKAGE}", hint=f"install it: {install_command(_GROUP)}"
            )
        watch(lambda: _run(names, values, project), lambda: dependencies(names, values), wait, project)


def watch(
    run: Callable[[], object],
    files: Callable[[], set[Path]],
    wait: Callable[[FileTimes], Iterable[Path]],
    project: Project,
) -> NoReturn:
    """Call `run`, then again after each change of one of `files`.

    A change during a run counts as well.
    """
    before = times_of(files())
    while True:
        run()
        times = times_of(files())
        times |= {path: time for path, time in before.items() if path in times}
        changed = _changed(times)
        if not changed:
            print(f"watching {len(times)} files; Ctrl-C ends", flush=True)
            changed = list(wait(times))
        shown = [project.display_path(path) for path in sorted(changed)[:_SHOWN]]
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        print(escape.line(f"changed: {', '.join(shown)}{more}"), flush=True)
        before = times_of(times)


def wait(times: FileTimes) -> list[Path]:
    """Wait until a file of `times`, or a similar file beside one, changes, appears or goes.

    Returns the paths. Files are similar if they are in the same folder and have the same suffix, such as new files
    of a glob. Times are compared once a second too: a change may come before the operating system watches.
    """
    from watchfiles import watch as changes_of

    # Names without links, as the operating system reports them.
    real = {path.parent.resolve() / path.name: path for path in times if path.parent.is_dir()}
    kinds = {(path.parent, path.suffix) for path in real}

    def is_watched(_change: object, name: str) -> bool:
        path = Path(name)
        return path in real or (path.suffix != "" and (path.parent, path.suffix) in kinds)

    folders = sorted({path.parent for path in real})
    options: dict[str, Any] = {"debounce": 400, "rust_timeout": 1000, "yield_on_timeout": True}
    for changes in changes_of(*folders, watch_filter=is_watched, recursive=False, **options):
        changed = [real.get(Path(name), Path(name)) for _, name in changes] or _changed(times)
        if changed:
            return changed
    # The watcher ends without changes only on a signal.
    raise KeyboardInterrupt


def dependencies(names: Sequence[str], values: Mapping[str, str]) -> set[Path]:
    """Return the files on which runs of the recipes depend, as far as they can be planned."""
    with Workspace() as workspace:
        project = workspace.project
        files = {project.root / PROJECT_FILE}
        try:
            for name in names:
                for recipe, until in recipes_and_stages([name], project, workspace.registry) or [(name, "")]:
                    for member in workspace.load(recipe, values):
                        files |= _documents(member, project)
                        files |= _files(workspace, member, until)
        except (PipelineError, StageError):
            # The run reports the error. Its remedy may be in any recipe.
            files |= {*(project.root / RECIPES).rglob("*.yaml")}
        return files


def _documents(member: LoadedRecipe, project: Project) -> set[Path]:
    """Return the files of a recipe and of those that it extends."""
    names = [document.name for document in member.sources.documents if document.is_file]
    return {
        project.installation / name.removeprefix(_BUILT_IN) if name.startswith(_BUILT_IN) else project.root / name
        for name in names
    }


def _files(workspace: Workspace, member: LoadedRecipe, until: str) -> set[Path]:
    """Return model, data and code of a recipe up to a stage ('': all).

    Without a plan, only the model.
    """
    model = getattr(member.recipe.model, "file", "")
    files = {located(model, workspace.root)} if model else set()
    try:
        plan = workspace.planner.plan(member, until)
    except (PipelineError, StageError):
        return files
    for action in plan:
        files |= {*action.files.values(), *(path for path, _ in action.code.values())}
    return files


def _run(names: Sequence[str], values: Mapping[str, str], project: Project) -> int:
    """Run the recipes in another process. Returns its exit code."""
    words = [*names, *(f"{key}={value}" for key, value in values.items())]
    module = "pipeline" if is_clone(INSTALLATION) else "firmline"
    environment = dict(os.environ)
    if is_clone(INSTALLATION):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(INSTALLATION), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", module, "run", *words]
    return subprocess.run(command, cwd=project.root, env=environment, check=False).returncode


def times_of(files: Iterable[Path]) -> FileTimes:
    """Return time and size of each file; (0, 0) for a missing one."""
    times = {}
    for path in files:
        try:
            status = path.stat()
            times[path] = (status.st_mtime_ns, status.st_size)
        except OSError:
            times[path] = (0, 0)
    return times


def _changed(times: FileTimes) -> list[Path]:
    """Return the files whose time or size is another now."""
    return [path for path, time in times_of(times).items() if time != times[path]]
