"""`doit explain NAME`: which stages of a recipe would run, and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.artifacts.store import Artifact
from pipeline.commands.command import JSON, Command, variables
from pipeline.commands.exit_codes import FAILED, PENDING
from pipeline.commands.reported import reported
from pipeline.commands.tasks import recipes_given
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.keys.explain import Explanation, code_folders, comparison_text, explain
from pipeline.keys.package_groups import locked_version
from pipeline.plugins.registry import registry_of
from pipeline.project import current_project
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.recipe_arguments import PUBLISH, check_recipe_arguments, matching_recipes, unknown_part_error
from pipeline.recipes.recipe_files import recipe_names
from pipeline.runs.foresight import Foresight
from pipeline.runs.workspace import Workspace
from stages.messages import escape


class Explain(Command):
    """`doit explain NAME`: which stages would run, and why."""

    name = "explain"
    names = "recipes"
    variables = RECIPE_VARIABLES
    doc_purpose = "say for each stage of a recipe whether it is cached, or why it will run"
    doc_usage = "NAME... [target=… model=… set=…] [--check] [--code] [--json]"
    doc_description = (
        "Compares with the last run of the same recipe. Stages that would run look at data and model first, as in a "
        "run: what they would refuse is an error. With --check, exit code 3 if a stage would run."
    )
    cmd_options = (
        {
            "name": "check",
            "long": "check",
            "short": "",
            "type": bool,
            "default": False,
            "help": "exit code 3 if a stage would run",
        },
        {
            "name": "code",
            "long": "code",
            "short": "",
            "type": bool,
            "default": False,
            "help": "name the folders whose code each stage depends on",
        },
        JSON,
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print one line per stage, and below it the reasons. Returns the exit code."""
        return reported(lambda: self._explain(opt_values, pos_args))

    def _explain(self, options: Mapping[str, Any], named: list[str]) -> int:
        found = print_explanations(named, code=options["code"], as_json=options["json"])
        code = exit_code(found)
        return code if code == FAILED or options["check"] else 0


@dataclass(frozen=True)
class Explained:
    """A recipe on a target: what each stage would do, or the message of why it cannot be planned.

    `compared` says with which run, `installs` which Python packages a run installs first (package, version, group);
    `code` has the folders whose code each stage depends on, by its kind.
    """

    title: str
    target: str
    compared: str = ""
    stages: tuple[Explanation, ...] = ()
    installs: tuple[tuple[str, str, str], ...] = ()
    code: Mapping[str, Sequence[str]] = field(default_factory=dict)
    error: str = ""

    @property
    def pending(self) -> bool:
        """Whether a stage would run, or may."""
        return bool(self.error or self.installs) or any(not stage.cached or stage.unless for stage in self.stages)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        stages = [{**asdict(stage), "code": list(self.code[stage.kind])} for stage in self.stages]
        own = {"recipe": self.title, "target": self.target, "pending": self.pending, "compared": self.compared}
        installs = [dict(zip(("package", "version", "group"), one, strict=True)) for one in self.installs]
        return {**own, "error": self.error, "installs": installs, "stages": stages}


def explanations(named: Sequence[str]) -> Iterator[tuple[Explained, bool]]:
    """All recipes that the command line names, some as far as one stage, and whether each is alone, not one of many.

    Raises RecipeError, and what hinders planning a recipe that is alone.
    """
    given = variables()
    check_recipe_arguments(named, [], current_project())
    found = dict.fromkeys((name, "") for name in recipes_given(given))
    parts = (*registry_of(current_project()).kinds, PUBLISH)
    for word in named:
        recipe, _, part = word.rpartition(":")
        is_part = bool(recipe) and part in parts
        if is_part and recipe.rpartition(":")[2] in parts:
            name, _, rest = recipe.partition(":")
            raise unknown_part_error(name, rest, (), registry_of(current_project()))
        until = part if is_part and part != PUBLISH else ""
        names = matching_recipes([recipe if is_part else word], current_project(), registry_of(current_project()))
        found |= dict.fromkeys((name, until) for name in names)
    given.pop("recipe", None)
    if not found:
        raise RecipeError(
            "which recipe? `doit explain NAME`", hint=list_known("recipes", recipe_names(current_project()))
        )
    with Workspace(locked_version=locked_version) as workspace:
        for name, until in found:
            members = workspace.load(name, given)
            for loaded in members:
                yield _explained(workspace, loaded, until, alone=len(members) == 1), len(members) == 1


def _explained(workspace: Workspace, loaded: LoadedRecipe, until: str, *, alone: bool) -> Explained:
    title, target = loaded.title, loaded.target.name
    try:
        plan = workspace.planner.plan(loaded, until)
        stages = tuple(explain(plan, workspace.store, workspace.manifest_elsewhere))
        if any(not stage.cached for stage in stages):
            Foresight(plan, workspace.root).look(_made(workspace, stages))
    except PipelineError as error:
        if alone:
            raise
        # As when it is run: one that cannot be planned does not hide the others.
        return Explained(title, target, error=str(error))
    code = {stage.kind: code_folders(plan[stage.kind]) for stage in stages}
    lacking = workspace.planner.tools.to_install
    wanted = dict.fromkeys(tool for action in plan for tool in action.wanted if tool in lacking)
    installs = tuple((tool.package, lacking[tool].version, tool.group) for tool in wanted)
    return Explained(title, target, comparison_text(plan, workspace.store), stages, installs, code)


def _made(workspace: Workspace, stages: Sequence[Explanation]) -> dict[str, Artifact]:
    """The artifacts that are there whatever runs, by the names of their stages."""
    found = {stage.kind: workspace.store.find(stage.key) for stage in stages if stage.cached and not stage.unless}
    return {kind: artifact for kind, artifact in found.items() if artifact is not None}


def exit_code(found: Sequence[Explained]) -> int:
    """FAILED, with a line that says so, where a recipe cannot be planned; PENDING where a stage would run."""
    broken = [one for one in found if one.error]
    if broken:
        sys.stderr.write(f"ERROR: {len(broken)} of {len(found)} recipes cannot run\n")
        return FAILED
    return PENDING if any(one.pending for one in found) else 0


def print_explanations(named: Sequence[str], *, code: bool = False, as_json: bool = False) -> list[Explained]:
    """Print the stages of a recipe, of one among many only those that would run, and return all that was found.

    With `code` the folders whose code each stage depends on are named; JSON has them always, and all stages.
    """
    if as_json:
        found = [one for one, _ in explanations(named)]
        print(json.dumps([one.record() for one in found], indent=1))
        return found
    found = []
    for one, alone in explanations(named):
        found.append(one)
        title = escape.line(f"{one.title} on {one.target}")
        if one.error:
            print(f"{title}\n  {escape.message(one.error).replace(chr(10), chr(10) + '  ')}")
            continue
        print(f"{title}{escape.line(f', {one.compared}' if alone or one.pending else ': cached')}")
        for package, version, group in one.installs:
            print(escape.line(f"  installs first: Python package {package} {version} (group {group})"))
        for stage in one.stages:
            if alone or not stage.cached or stage.unless:
                print(f"  {stage.kind:12} {_state(stage)}")
                for reason in stage.reasons:
                    print(f"    {escape.line(reason)}")
            if alone and code:
                print(escape.line(f"    code: {', '.join(one.code[stage.kind])}"))
    return found


def _state(stage: Explanation) -> str:
    if not stage.cached:
        return "will run"
    where = "in the remote store" if stage.remote else "cached"
    if not stage.unless:
        return where
    several = "leave" if len(stage.unless) > 1 else "leaves"
    return f"{where}, if {' and '.join(stage.unless)} {several} the same bytes as before"
