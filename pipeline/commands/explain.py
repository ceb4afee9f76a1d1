"""`doit explain NAME`: which stages of a recipe would run, and why."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.artifacts.store import Artifact
from pipeline.commands.command import JSON, Command, command_option, variables
from pipeline.commands.exit_codes import FAILED, PENDING
from pipeline.commands.tasks import recipe_argument
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.keys.explain import Explanation, code_folders, comparison_text, explain
from pipeline.keys.package_groups import locked_version
from pipeline.plugins.registry import registry_of
from pipeline.project import current_project
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.recipe_arguments import check_recipe_arguments, recipes_and_stages
from pipeline.recipes.recipe_files import recipe_names
from pipeline.runs.preflight import PreflightCheck
from pipeline.runs.workspace import Workspace
from stages.support.messages import escape


class Explain(Command):
    """`doit explain NAME`."""

    name = "explain"
    group = "look"
    examples = (
        ("kws_rvp", "each stage: cached, or why it will run"),
        ("kws_rvp target=cortex-m4", "the same on another core"),
        ("kws_rvp --check", "exit code 3 if a stage would run, for scripts"),
    )
    names = "recipes"
    variables = RECIPE_VARIABLES
    doc_purpose = "show for each stage of a recipe whether it is cached, or why it will run"
    doc_usage = "NAME... [target=… model=… set=…] [--check] [--code] [--json]"
    doc_description = (
        "Compares with the last run of the same recipe on the same target. Includes the preflight check of a run: "
        "data or a model that a stage would refuse is an error."
    )
    cmd_options = (
        command_option("check", "exit code 3 if a stage would run"),
        command_option("code", "print the folders whose code each stage depends on"),
        JSON,
    )

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        recipes = print_explanations(named, code=options["code"], as_json=options["json"])
        code = exit_code(recipes)
        return code if code == FAILED or options["check"] else 0


@dataclass(frozen=True)
class RecipeExplanation:
    """What each stage of a recipe would do on a target, or why the recipe cannot be planned.

    compared  the earlier run that the reasons refer to
    installs  Python packages that a run installs first: package, version, group
    code      folders whose code a stage depends on, by the stage's kind
    streaming layers by rows, as in report.json; None without them, or if the stage tensorize would run
    error     message if the recipe cannot be planned, else ''
    """

    title: str
    target: str
    compared: str = ""
    stages: tuple[Explanation, ...] = ()
    installs: tuple[tuple[str, str, str], ...] = ()
    code: Mapping[str, Sequence[str]] = field(default_factory=dict)
    streaming: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def pending(self) -> bool:
        """Whether a stage would or may run."""
        return bool(self.error or self.installs) or any(not stage.cached or stage.unless for stage in self.stages)

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        stages = [{**asdict(stage), "code": list(self.code[stage.kind])} for stage in self.stages]
        head = {"recipe": self.title, "target": self.target, "pending": self.pending, "compared": self.compared}
        installs = [dict(zip(("package", "version", "group"), package, strict=True)) for package in self.installs]
        return {**head, "error": self.error, "installs": installs, "stages": stages, "streaming": self.streaming}


def explanations(named: Sequence[str]) -> Iterator[tuple[RecipeExplanation, bool]]:
    """Yield an explanation per named recipe, and whether the recipe is the only one.

    `NAME:STAGE` ends at that stage. Raises RecipeError, and the recipe's errors if it is the only one.
    """
    values, project = variables(), current_project()
    check_recipe_arguments(named, [], project)
    selected = dict.fromkeys((name, "") for name in recipe_argument(values))
    selected |= dict.fromkeys(recipes_and_stages(named, project, registry_of(project)))
    values.pop("recipe", None)
    if not selected:
        raise RecipeError(
            "no recipe is named: use `doit explain NAME`", hint=list_known("recipes", recipe_names(project))
        )
    with Workspace(locked_version=locked_version) as workspace:
        for name, until in selected:
            members = workspace.load(name, values)
            for loaded in members:
                yield _explain_recipe(workspace, loaded, until, alone=len(members) == 1), len(members) == 1


def _explain_recipe(workspace: Workspace, loaded: LoadedRecipe, until: str, *, alone: bool) -> RecipeExplanation:
    title, target = loaded.title, loaded.target.name
    try:
        plan = workspace.planner.plan(loaded, until)
        stages = tuple(explain(plan, workspace.store, workspace.remote_manifest))
        if any(not stage.cached for stage in stages):
            PreflightCheck(plan, workspace.root).run(_existing_artifacts(workspace, stages))
    except PipelineError as error:
        if alone:
            raise
        # An error in one recipe must not hide the others.
        return RecipeExplanation(title, target, error=str(error))
    code = {stage.kind: code_folders(plan[stage.kind]) for stage in stages}
    missing = workspace.planner.tools.to_install
    used = dict.fromkeys(tool for action in plan for tool in action.required_tools if tool in missing)
    installs = tuple((tool.package, missing[tool].version, tool.group) for tool in used)
    streaming = _streaming(loaded, _existing_artifacts(workspace, stages))
    return RecipeExplanation(title, target, comparison_text(plan, workspace.store), stages, installs, code, streaming)


def _streaming(loaded: LoadedRecipe, artifacts: Mapping[str, Artifact]) -> dict[str, Any] | None:
    """Return the layers by rows of tensorize's plan, if its artifact is stored."""
    from stages.report.streaming import streaming

    for link in loaded.sequence:
        path = artifacts[link.name].files / "plan.json" if link.name in artifacts else None
        if link.stage.role == "tensorize" and path is not None and path.is_file():
            return streaming(json.loads(path.read_text()))
    return None


def _existing_artifacts(workspace: Workspace, stages: Sequence[Explanation]) -> dict[str, Artifact]:
    """Return the artifacts that exist whatever runs, by the names of their stages."""
    artifacts = {stage.kind: workspace.store.find(stage.key) for stage in stages if stage.cached and not stage.unless}
    return {kind: artifact for kind, artifact in artifacts.items() if artifact is not None}


def exit_code(recipes: Sequence[RecipeExplanation]) -> int:
    """Return the exit code and print an error line if a recipe cannot be planned.

    FAILED: a recipe cannot be planned. PENDING: a stage would run. Else 0."""
    broken = [recipe for recipe in recipes if recipe.error]
    if broken:
        sys.stderr.write(f"ERROR: {len(broken)} of {len(recipes)} recipes cannot run\n")
        return FAILED
    return PENDING if any(recipe.pending for recipe in recipes) else 0


def print_explanations(named: Sequence[str], *, code: bool = False, as_json: bool = False) -> list[RecipeExplanation]:
    """Print the stages of each recipe. Returns the explanations.

    With several recipes, only stages that would run are printed. `code` adds the folders whose code each stage uses.
    JSON always has all stages and folders.
    """
    if as_json:
        recipes = [recipe for recipe, _ in explanations(named)]
        print(json.dumps([recipe.record() for recipe in recipes], indent=1))
        return recipes
    recipes = []
    for recipe, alone in explanations(named):
        recipes.append(recipe)
        title = escape.line(f"{recipe.title} on {recipe.target}")
        if recipe.error:
            print(f"{title}\n  {escape.message(recipe.error).replace(chr(10), chr(10) + '  ')}")
            continue
        print(f"{title}{escape.line(f', {recipe.compared}' if alone or recipe.pending else ': cached')}")
        for package, version, group in recipe.installs:
            print(escape.line(f"  installs first: Python package {package} {version} (group {group})"))
        for stage in recipe.stages:
            if alone or not stage.cached or stage.unless:
                print(f"  {stage.kind:12} {_state(stage)}")
                for reason in stage.reasons:
                    print(f"    {escape.line(reason)}")
            if alone and code:
                print(escape.line(f"    code: {', '.join(recipe.code[stage.kind])}"))
        if alone and recipe.streaming:
            from stages.report.streaming import explained

            for line in explained(recipe.streaming):
                print(f"  {escape.line(line)}")
    return recipes


def _state(stage: Explanation) -> str:
    if not stage.cached:
        return "will run"
    where = "in the remote store" if stage.remote else "cached"
    if not stage.unless:
        return where
    several = "leave" if len(stage.unless) > 1 else "leaves"
    return f"{where}, if {' and '.join(stage.unless)} {several} the same bytes as before"
