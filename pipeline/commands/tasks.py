"""The recipe's stages as doit tasks.

For each recipe, `doit run recipe=a,b` has one task per stage, and one that fills the build folder: `a:import` …
`a:publish`. With `target=x,y` these are `a@x:import` …, and `a:import` stands for those of all targets. A matrix `m`
has them for each variant: `m:kws-host:import` …. The first variant or target runs the stages that several share. A
recipe named as a task (`doit run a`, `doit run m:kws-host:emit`) is the same as with `recipe=`. Without a name, each
recipe and variant is one task, for `doit list`.

doit's state is kept in memory and dropped at the end: `uptodate` asks the store.
"""

import gc
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from doit.exceptions import InvalidCommand, TaskFailed

from pipeline.commands.command import variables
from pipeline.commands.executor import current_executor
from pipeline.commands.report_errors import wants_traceback
from pipeline.errors import PipelineError, RecipeError, first_line
from pipeline.keys.package_groups import install_group
from pipeline.keys.planner import Action
from pipeline.plugins.registry import Registry, registry_of
from pipeline.process.interruption import interrupted
from pipeline.project import Project, current_project, project_of
from pipeline.recipes.loader import LoadedRecipe, describe_recipe, load_recipes, paths_to_names
from pipeline.recipes.recipe_arguments import PUBLISH, check_matrix_arguments, check_recipe_arguments, matching_recipes
from pipeline.recipes.recipe_files import hiding_notes, is_built_in, recipe_names
from pipeline.runs.session import Session
from pipeline.runs.workspace import Workspace
from pipeline.terminal.matrix_run import MatrixRun
from pipeline.terminal.reporter import StageReporter, TaskInfo
from stages.base import StageError
from stages.support.messages import escape

_NO_RECIPE = "_which_recipe"
Task = dict[str, Any]


def recipe_argument(values: dict[str, str]) -> list[str]:
    """Return the recipes of `recipe=a,b`, each once, in order."""
    return list(dict.fromkeys(name.strip() for name in values.get("recipe", "").split(",") if name.strip()))


def task_names(words: Sequence[str]) -> list[str]:
    """Return the names of the tasks that `words` (without options) select.

    Raises doit's InvalidCommand.
    """
    try:
        check_recipe_arguments(words, recipe_argument(variables()), current_project())
        return paths_to_names(words, current_project())
    except PipelineError as error:
        raise InvalidCommand(str(error)) from None


def doit_config(
    words: Sequence[str] = (), root: Path | Project | None = None, registry: Registry | None = None
) -> dict[str, Any]:
    """Return doit's settings for this project; `words` are from the command line."""
    config: dict[str, Any] = {
        "reporter": StageReporter,
        # In memory: it cannot be corrupted, and parallel runs share no file.
        "backend": "sqlite3",
        "dep_file": ":memory:",
        # Stages share the plan; they work in subprocesses or in C++.
        "par_type": "thread",
        "verbosity": 2,
        # A failed recipe stops its own stages only.
        "continue": True,
    }
    if "recipe" not in variables() and not matching_recipes(
        words, root or current_project(), registry or registry_of(project_of(root or current_project()))
    ):
        config["default_tasks"] = [_NO_RECIPE]
    return config


def recipe_tasks(
    words: Sequence[str] = (), root: Path | Project | None = None, registry: Registry | None = None
) -> Iterator[Task]:
    """Yield the tasks of the recipes that the command line names.

    Raises doit's InvalidCommand with the pipeline's message.
    """
    try:
        project = project_of(root or current_project())
        values = variables()
        names = recipe_argument(values) or matching_recipes(words, project, registry or registry_of(project))
        values.pop("recipe", None)
        words = paths_to_names(words, project)
        if not names:
            yield from _one_task_per_recipe(project, registry or registry_of(project))
            return
        # Stays open until the process ends: `doit gc` must not delete from a store in use.
        workspace = Workspace(root=project, registry=registry, install=install_group).__enter__()
        # Thousands of tasks are created and none is dropped: garbage collection would take most of the time.
        gc.disable()
        printed: list[str] = []
        for name in names:
            members = workspace.load(name, values)
            for note in hiding_notes((document.name for document in members[0].sources.documents), project):
                if note not in printed:
                    printed.append(note)
                    sys.stderr.write(f"note: {escape.line(note)}\n")
            if len(members) == 1 and (not members[0].variant or name == members[0].title):
                yield from _recipe_tasks(workspace, members[0], words, alone=len(names) == 1)
            elif not members[0].variant:
                yield from _target_tasks(workspace, members, words)
            else:
                check_matrix_arguments(words, members[0].recipe.name, workspace.registry)
                yield from _matrix_tasks(workspace, members, words)
    except (PipelineError, StageError) as error:
        if wants_traceback():
            raise
        raise InvalidCommand(str(error)) from None
    finally:
        gc.enable()


def _session(workspace: Workspace, member: LoadedRecipe, words: Sequence[str]) -> Session:
    """Return a recipe's session, checked; it ends at the last stage that `words` name."""
    plan = workspace.planner.plan(member)
    for kind in workspace.registry.kinds:
        if f"{plan.recipe}:{kind}" in words:
            member.sequence.until(kind)
    named = [action.kind for action in plan if f"{plan.recipe}:{action.kind}" in words]
    wholly = {plan.recipe, member.recipe.name, f"{plan.recipe}:{PUBLISH}"} & set(words)
    session = Session(workspace, plan, until=named[-1] if named and not wholly else "", executor=current_executor())
    try:
        session.preflight_check()
    except PipelineError:
        session.close()
        raise
    return session


def _recipe_tasks(workspace: Workspace, member: LoadedRecipe, words: Sequence[str], *, alone: bool) -> Iterator[Task]:
    """Yield the tasks of one recipe. Raises PipelineError if it is refused and is the only one."""
    try:
        session = _session(workspace, member, words)
    except PipelineError as error:
        if alone or any(word.startswith(f"{member.title}:") for word in words):
            raise
        yield _refused_task(None, member, error)
        return
    yield from _stage_tasks(session)


def _target_tasks(workspace: Workspace, members: Sequence[LoadedRecipe], words: Sequence[str]) -> Iterator[Task]:
    """Yield the tasks of one recipe on several targets, and a task for all of them."""
    recipe = members[0].title
    titles = [f"{recipe}@{member.target.name}" for member in members]
    owners: dict[str, list[str]] = {}
    yield {"basename": recipe, "name": None, "doc": f"{recipe} on {len(titles)} targets", "task_dep": titles}
    for kind in dict.fromkeys((*(kind for member in members for kind in member.sequence.names), PUBLISH)):
        if f"{recipe}:{kind}" in words:
            yield {
                "basename": recipe,
                "name": kind,
                "actions": None,
                "task_dep": [f"{title}:{kind}" for title in titles],
            }
    for title, member in zip(titles, members, strict=True):
        try:
            session = _session(workspace, member, words)
        except PipelineError as error:  # must not stop the other targets
            yield _refused_task(None, member, error, title)
        else:
            yield from _stage_tasks(session, owners=owners, title=title)


def _matrix_tasks(workspace: Workspace, members: Sequence[LoadedRecipe], words: Sequence[str]) -> Iterator[Task]:
    name = members[0].recipe.name
    folder = workspace.build / name
    matrix = MatrixRun(folder, workspace.display_path(folder), members)
    owners: dict[str, list[str]] = {}
    yield {
        "basename": name,
        "name": None,
        "doc": f"matrix of {len(members)} recipes: {' x '.join(members[0].labels)}",
        "task_dep": [member.title for member in members],
    }
    for member in members:
        try:
            session = _session(workspace, member, words)
        except Exception as error:  # of any class: it must not stop the other variants
            yield _refused_task(matrix, member, error)
            continue
        matrix.planned(session.plan)
        yield from _stage_tasks(session, matrix, owners)


def _refused_task(matrix: MatrixRun | None, member: LoadedRecipe, error: Exception, title: str = "") -> Task:
    title = title or member.title

    def refuse() -> None:
        raise error

    return {
        "basename": title,
        "doc": f"{title} cannot be planned",
        "actions": [(_guarded, [refuse])],
        "io": {"capture": False},
        "meta": {"shown": TaskInfo(title, matrix=matrix)},
    }


def _stage_tasks(
    session: Session, matrix: MatrixRun | None = None, owners: dict[str, list[str]] | None = None, title: str = ""
) -> Iterator[Task]:
    """Yield the tasks of one recipe; `title` replaces its name in theirs.

    `owners` has the tasks of all variants so far that run an action, by the action's identity.
    """
    recipe = title or session.plan.recipe
    owners = {} if owners is None else owners

    def publish() -> None:
        session.publish()
        if matrix is not None:
            matrix.finished(recipe, session.report)
            # A matrix may have more recipes than the limit of open files.
            session.close()

    yield {"basename": recipe, "name": None, "doc": f"all stages of {recipe} on {session.plan.target}"}
    for action in session.plan:
        tasks = owners.setdefault(action.identity, [])
        tasks.append(f"{recipe}:{action.kind}")
        yield _stage_task(session, action, recipe, matrix, tasks)
    yield {
        "basename": recipe,
        "name": PUBLISH,
        "doc": f"fill {session.workspace.display_path(session.folder)}/ with firmware.elf, src/, report.json, log.txt",
        "actions": [(_guarded, [publish, session])],
        "task_dep": [f"{recipe}:{action.kind}" for action in session.plan],
        "io": {"capture": False},
        "meta": {"shown": TaskInfo(recipe, session, matrix=matrix)},
    }


def _stage_task(session: Session, action: Action, recipe: str, matrix: MatrixRun | None, tasks: Sequence[str]) -> Task:
    """Return the task of a stage.

    `tasks` are the tasks of all recipes that share the stage; the first one owns it.
    """
    name, owner = f"{recipe}:{action.kind}", tasks[0]
    done: list[bool] = []

    def is_done() -> bool:
        done[:] = [session.is_done(action)]
        return done[0]

    def run() -> None:
        # With `-a`, doit also runs tasks that are up to date; shared stages must then run once only.
        session.run(action, force=done == [True] and owner == name, shared=len(tasks) > 1)

    return {
        "basename": recipe,
        "name": action.kind,
        "doc": (type(action.stage).__doc__ or action.kind).strip().splitlines()[0],
        "actions": [(_guarded, [run, session])],
        "task_dep": [f"{recipe}:{name}" for name in action.link.inputs.values()] + ([owner] if owner != name else []),
        "uptodate": [is_done],
        # doit would capture output by replacing sys.stdout, which threads share.
        "io": {"capture": False},
        "meta": {"shown": TaskInfo(recipe, session, action.kind, action.identity, matrix)},
    }


def _one_task_per_recipe(project: Project, registry: Registry) -> Iterator[Task]:
    """Yield a task per recipe for `doit list`; `recipe_tasks` has those that run."""
    known = recipe_names(project, nested=True)
    summaries = {name: describe_recipe(name, project) for name in known}
    columns = [summary.columns for summary in summaries.values() if not summary.matrix and not summary.error]
    model, target = (max((len(row[index]) for row in columns), default=0) for index in (0, 1))
    for name, summary in summaries.items():
        purpose = f"built-in. {summary.purpose}" if is_built_in(name, project) else summary.purpose
        # Built-in recipes have no errors.
        error = summary.error or (
            "" if summary.matrix or is_built_in(name, project) else _recipe_error(name, project, registry)
        )
        if error:
            # An error in one recipe must not hide the others.
            yield {"basename": name, "doc": f"cannot be read: {error}", "actions": None}
        elif summary.matrix:
            yield from _matrix_listing(name, purpose, project, registry)
        else:
            doc = f"{summary.columns[0]:{model}}  {summary.columns[1]:{target}}  {purpose}".rstrip()
            yield {"basename": name, "doc": doc, "actions": None}
    yield {"basename": _NO_RECIPE, "actions": [(_guarded, [partial(_no_recipe, known)])], "io": {"capture": False}}


def _recipe_error(name: str, project: Project, registry: Registry) -> str:
    """Return the first line of a recipe's error, '' if there is none."""
    try:
        load_recipes(name, root=project, registry=registry)
    except RecipeError as error:
        return error.message.splitlines()[0]
    except (PipelineError, StageError) as error:
        return str(error).splitlines()[0]  # from a plug-in of the recipe
    return ""


def _matrix_listing(name: str, purpose: str, project: Project, registry: Registry) -> Iterator[Task]:
    try:
        members = load_recipes(name, root=project, registry=registry)
    except RecipeError as error:
        yield {"basename": name, "doc": f"cannot be read: {error.message.splitlines()[0]}", "actions": None}
        return
    doc = f"matrix of {len(members)} recipes: {' x '.join(members[0].labels)}; --all lists them. {purpose}".rstrip()
    yield {"basename": name, "name": None, "doc": doc}
    for member in members:
        yield {"basename": name, "name": member.variant, "doc": f"on {member.target.name}", "actions": None}


def _guarded(work: Callable[[], object], session: Session | None = None) -> TaskFailed | None:
    """Run a task's work. Returns an error as doit's failure with its message, or its traceback."""
    try:
        work()
    except Exception as error:
        if interrupted():
            # The signal killed the compiler, or TVM raised its own error for it.
            raise KeyboardInterrupt from None
        if wants_traceback():
            return TaskFailed(traceback.format_exc())
        if isinstance(error, PipelineError):
            return TaskFailed(str(error))
        message = f"unexpected {type(error).__name__}: {first_line(error)}"
        if session is not None:
            session.log_traceback()
            message += f"\nthe traceback is in {session.log_name}"
        return TaskFailed(message)
    return None


def _no_recipe(known: list[str]) -> None:
    raise RecipeError(
        "no recipe is named: use `doit run NAME`",
        hint=f"`doit list` shows the {len(known)} recipes, `doit help` all commands",
    )
