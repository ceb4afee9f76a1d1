"""The command `doit graph NAME`."""

import json
from pathlib import Path
from typing import Any

from pipeline.commands.command import JSON, Command, named_recipes
from pipeline.commands.graph.content import layer_column, network_of, stage_column
from pipeline.commands.graph.drawing import svg
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import PipelineError
from pipeline.keys.explain import explain
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.recipe_arguments import check_recipe_arguments, recipes_and_stages
from pipeline.runs.workspace import Workspace
from stages.support.messages import escape
from stages.support.system.atomic_write import write_atomically
from stages.support.system.path_below import path_below

_TO = "to"


class Graph(Command):
    """`doit graph NAME`."""

    name = "graph"
    group = "look"
    names = "recipes"
    examples = (
        ("kws_rvp", "build/kws_rvp/rv64-rvp/graph.svg"),
        ("kws_rvp:tensorize", "stages up to tensorize, and its layers"),
        ("kws_rvp target=cortex-m4 to=kws.svg", "on another core, into another file"),
    )
    keys_help = (("to", "the file; default build/NAME/TARGET/graph.svg, of NAME:STAGE graph-STAGE.svg"),)
    variables = RECIPE_VARIABLES
    own_variables = (_TO,)
    doc_purpose = "draw the stages and layers of a recipe as SVG"
    doc_usage = "NAME... [to=FILE] [target=… model=… set=…] [--json]"
    doc_description = (
        "Stages with their state and the seconds of their last run; layers with kernel, shapes and instructions. "
        "Layers are those of the stored artifacts: before the first run, only the stages are drawn. Runs nothing."
    )
    cmd_options = (JSON,)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        names, values = named_recipes(self.name, named)
        to, records = self.own_values.get(_TO, "").strip(), []
        with Workspace() as workspace:
            check_recipe_arguments(names, [], workspace.project)
            members = [
                (member, until)
                for recipe, until in recipes_and_stages(names, workspace.project, workspace.registry)
                for member in workspace.load(recipe, values)
            ]
            if to and len(members) > 1:
                raise PipelineError(f"to={escape.name(to, 200)}: a file has one drawing, got {len(members)}")
            for member, until in members:
                records.append(_write(workspace, member, until, to))
        if options["json"]:
            print(json.dumps(records, indent=1))
            return 0
        for record in records:
            count = record["layers"]
            layers = f"{count} layer{'s' * (count > 1)}" if count else "no layers are stored"
            stages = f"{record['stages']} stage{'s' * (record['stages'] > 1)}"
            print(escape.line(f"{record['file']}: {stages}, {layers}"))
        return 0


def _write(workspace: Workspace, member: LoadedRecipe, until: str, to: str) -> dict[str, Any]:
    """Write the drawing of a recipe up to a stage ('': all).

    Returns its JSON record. Raises PipelineError.
    """
    plan = workspace.planner.plan(member, until)
    stages = explain(plan, workspace.store, workspace.remote_manifest)
    last = workspace.store.runs.find(plan.recipe, plan.target)
    last_keys = last.keys if last is not None and last.target == plan.target else {}
    artifacts = {}
    for stage in stages:
        key = stage.key if stage.cached and stage.key else last_keys.get(stage.kind, "")
        artifact = workspace.store.find(key) if key else None
        if artifact is not None:
            artifacts[stage.kind] = artifact
    network = network_of(list(artifacts.values()))
    title = f"{plan.recipe}:{until}" if until else plan.recipe
    columns = [stage_column(plan, stages, artifacts)]
    columns += [layer_column(network)] if network is not None else []
    place = Path(to) if to else plan.folder / (f"graph-{until}.svg" if until else "graph.svg")
    try:
        file = workspace.root / place if to else path_below(workspace.build, place)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, svg(f"{title} on {plan.target}", columns))
    except OSError as error:
        raise PipelineError(f"{escape.name(str(place), 200)} cannot be written: {error.strerror}") from None
    layers = 0 if network is None else len(network.graph["layers"])
    shown = workspace.display_path(file)
    return {"recipe": plan.recipe, "target": plan.target, "file": shown, "stages": len(stages), "layers": layers}
