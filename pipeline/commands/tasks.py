"""The recipe's stages as doit tasks.

`doit run recipe=a,b` has, for each recipe, one task per stage and one that fills the build folder: `a:import` …
`a:publish`; for a matrix `m` these of each sub-recipe, `m:kws-host:import` …, and a stage that several sub-recipes
share runs in the first of them. A recipe named as a task (`doit run a`, `doit run m:kws-host:emit`) is the same as
with `recipe=`. Without any, each recipe and sub-recipe is one task, so that `doit list` shows them.

doit's own state is kept in memory and forgotten: `uptodate` asks the store.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from doit.exceptions import InvalidCommand, TaskFailed

from pipeline.commands.command import variables
from pipeline.commands.executing import chosen
from pipeline.commands.reported import wants_traceback
from pipeline.errors import PipelineError, RecipeError, first_line, list_known
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
from pipeline.terminal.reporter import Shown, StageReporter
from stages.base import StageError
from stages.messages import escape

_ASK = "_which_recipe"
Task = dict[str, Any]


def recipes_given(given: dict[str, str]) -> list[str]:
    """The recipes of `recipe=a,b`, each once, in order."""
    return list(dict.fromkeys(name.strip() for name in given.get("recipe", "").split(",") if name.strip()))


def check_named(words: Sequence[str]) -> list[str]:
    """The names of the tasks that `words` (without options) mean. Raises doit's InvalidCommand."""
    try:
        check_recipe_arguments(words, recipes_given(variables()), current_project())
        return paths_to_names(words, current_project())
    except PipelineError as error:
        raise InvalidCommand(str(error)) from None


def doit_config(
    words: Sequence[str] = (), root: Path | Project | None = None, registry: Registry | None = None
) -> dict[str, Any]:
    """doit's settings for this project; `words` are the command line's."""
    config: dict[str, Any] = {
        "reporter": StageReporter,
        # In memory: nothing to corrupt, nothing for two runs to fight over.
        "backend": "sqlite3",
        "dep_file": ":memory:",
        # Stages share the plan, and do their work in subprocesses or in C++.
        "par_type": "thread",
        "verbosity": 2,
        # A recipe that fails stops its own stages, not those of the others.
        "continue": True,
    }
    if "recipe" not in variables() and not matching_recipes(
        words, root or current_project(), registry or registry_of(project_of(root or current_project()))
    ):
        config["default_tasks"] = [_ASK]
    return config


def recipe_tasks(
    words: Sequence[str] = (), root: Path | Project | None = None, registry: Registry | None = None
) -> Iterator[Task]:
    """The tasks of the recipes named on the command line, whose words are `words`.

    Raises doit's InvalidCommand with the pipeline's message.
    """
    try:
        project = project_of(root or current_project())
        given = variables()
        names = recipes_given(given) or matching_recipes(words, project, registry or registry_of(project))
        given.pop("recipe", None)
        words = paths_to_names(words, project)
        if not names:
            yield from _one_task_per_recipe(project, registry or registry_of(project))
            return
        # Stays open until the process ends: the store must not be trimmed while it is in use.
        workspace = Workspace(root=project, registry=registry, install=install_group, executor=chosen()).__enter__()
        # Thousands of tasks are made and none is dropped: collecting garbage again and again took most of the time.
        gc.disable()
        told: list[str] = []
        for name in names:
            members = workspace.load(name, given)
            for note in hiding_notes((document.name for document in members[0].sources.documents), project):
                if note not in told:
                    told.append(note)
                    sys.stderr.write(f"note: {escape.line(note)}\n")
            if len(members) == 1 and (not members[0].variant or name == members[0].title):
                yield from _recipe_tasks(workspace, members[0], words, alone=len(names) == 1)
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
    """The session of a recipe that no stage is yet sure to refuse; of stages that `words` name, the last is the end."""
    plan = workspace.planner.plan(member)
    for kind in workspace.registry.kinds:
        if f"{plan.recipe}:{kind}" in words:
            member.chain.until(kind)
    named = [action.kind for action in plan if f"{plan.recipe}:{action.kind}" in words]
    wholly = {plan.recipe, member.recipe.name, f"{plan.recipe}:{PUBLISH}"} & set(words)
    session = Session(workspace, plan, until=named[-1] if named and not wholly else "")
    try:
        session.foresee()
    except PipelineError:
        session.close()
        raise
    return session


def _recipe_tasks(workspace: Workspace, member: LoadedRecipe, words: Sequence[str], *, alone: bool) -> Iterator[Task]:
    """The tasks of one recipe. Raises PipelineError where a stage refuses it, and no other recipe can run."""
    try:
        session = _session(workspace, member, words)
    except PipelineError as error:
        if alone or any(word.startswith(f"{member.title}:") for word in words):
            raise
        yield _refused_task(None, member, error)
        return
    yield from _stage_tasks(session)


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
        except Exception as error:  # whatever its class, the outcome of this one and not the end of all
            yield _refused_task(matrix, member, error)
            continue
        matrix.planned(session.plan)
        yield from _stage_tasks(session, matrix, owners)


def _refused_task(matrix: MatrixRun | None, member: LoadedRecipe, error: Exception) -> Task:
    def refuse() -> None:
        raise error

    return {
        "basename": member.title,
        "doc": f"{member.title} cannot be planned",
        "actions": [(_guarded, [refuse])],
        "io": {"capture": False},
        "meta": {"shown": Shown(member.title, matrix=matrix)},
    }


def _stage_tasks(
    session: Session, matrix: MatrixRun | None = None, owners: dict[str, list[str]] | None = None
) -> Iterator[Task]:
    """The tasks of one recipe. `owners` has the tasks that run an action, by identity, of all sub-recipes so far."""
    recipe = session.plan.recipe
    owners = {} if owners is None else owners

    def publish() -> None:
        session.publish()
        if matrix is not None:
            matrix.finished(recipe, session.report)
            # A matrix may have more recipes than a process may have open files.
            session.close()

    yield {"basename": recipe, "name": None, "doc": f"all stages of {recipe} on {session.plan.target}"}
    for action in session.plan:
        tasks = owners.setdefault(action.identity, [])
        tasks.append(f"{recipe}:{action.kind}")
        yield _stage_task(session, action, matrix, tasks)
    yield {
        "basename": recipe,
        "name": PUBLISH,
        "doc": f"fill {session.workspace.display_path(session.folder)}/ with firmware.elf, src/, report.json, log.txt",
        "actions": [(_guarded, [publish, session])],
        "task_dep": [f"{recipe}:{action.kind}" for action in session.plan],
        "io": {"capture": False},
        "meta": {"shown": Shown(recipe, session, matrix=matrix)},
    }


def _stage_task(session: Session, action: Action, matrix: MatrixRun | None, tasks: Sequence[str]) -> Task:
    """The task of a stage. `tasks` are those of all recipes that share it, in the end; the first owns it."""
    recipe = action.recipe
    name, owner = f"{recipe}:{action.kind}", tasks[0]
    found: list[bool] = []

    def is_done() -> bool:
        found[:] = [session.is_done(action)]
        return found[0]

    def run() -> None:
        # doit runs what is up to date only when told to (`-a`); what is shared is then made once.
        session.run(action, force=found == [True] and owner == name, shared=len(tasks) > 1)

    return {
        "basename": recipe,
        "name": action.kind,
        "doc": (type(action.stage).__doc__ or action.kind).strip().splitlines()[0],
        "actions": [(_guarded, [run, session])],
        "task_dep": [f"{recipe}:{name}" for name in action.link.inputs.values()] + ([owner] if owner != name else []),
        "uptodate": [is_done],
        # doit captures output by replacing sys.stdout, which threads share.
        "io": {"capture": False},
        "meta": {"shown": Shown(recipe, session, action.kind, action.identity, matrix)},
    }


def _one_task_per_recipe(project: Project, registry: Registry) -> Iterator[Task]:
    """For `doit list`: a task that is run by its name is in `recipe_tasks`."""
    known = recipe_names(project, nested=True)
    written = {name: describe_recipe(name, project) for name in known}
    columns = [one.columns for one in written.values() if not one.matrix and not one.error]
    model, target = (max((len(row[index]) for row in columns), default=0) for index in (0, 1))
    for name, one in written.items():
        purpose = f"built-in. {one.purpose}" if is_built_in(name, project) else one.purpose
        # Firmline's own are sound.
        error = one.error or ("" if one.matrix or is_built_in(name, project) else _mistake(name, project, registry))
        if error:
            # A mistake in one recipe must not hide the others.
            yield {"basename": name, "doc": f"cannot be read: {error}", "actions": None}
        elif one.matrix:
            yield from _matrix_listing(name, purpose, project, registry)
        else:
            doc = f"{one.columns[0]:{model}}  {one.columns[1]:{target}}  {purpose}".rstrip()
            yield {"basename": name, "doc": doc, "actions": None}
    yield {"basename": _ASK, "actions": [(_guarded, [partial(_ask, known)])], "io": {"capture": False}}


def _mistake(name: str, project: Project, registry: Registry) -> str:
    """The first line of what is wrong with a recipe, '' when nothing is."""
    try:
        load_recipes(name, root=project, registry=registry)
    except RecipeError as error:
        return error.message.splitlines()[0]
    except (PipelineError, StageError) as error:
        return str(error).splitlines()[0]  # of a plug-in that it needs
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
    """Run a task's work; an error becomes doit's failure with the message alone, unless tracebacks are wanted."""
    try:
        work()
    except Exception as error:
        if interrupted():
            # The compiler was killed, or TVM made an error of its own of it.
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


def _ask(known: list[str]) -> None:
    raise RecipeError("which recipe? `doit run recipe=NAME`", hint=list_known("recipes", known))
