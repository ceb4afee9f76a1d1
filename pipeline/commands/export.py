"""`doit export`: write a recipe's sources as a project of a build system."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.api import run_recipe
from pipeline.commands.catalogue.listing import in_columns
from pipeline.commands.command import JSON, Command, single_recipe, variables
from pipeline.commands.pyproject import pyproject_table
from pipeline.commands.report_errors import report_errors
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import PipelineError
from pipeline.keys.package_groups import install_group
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import plugin_attribute
from pipeline.plugins.registry import registry_of
from pipeline.project import Project, current_project
from pipeline.recipes.loader import LoadedRecipe, load_recipes
from pipeline.terminal.progress import ProgressDisplay
from stages.base import StageError
from stages.delivery.export import folder, registry
from stages.delivery.export.content import content_of
from stages.delivery.export.form import Form
from stages.delivery.export.names import identifier
from stages.delivery.export.render import facts_of, files_of
from stages.support.messages import escape
from stages.support.system.path_below import path_below

_AS, _TO = "as", "to"
_USUAL_PREFIX = "model"


class Export(Command):
    """`doit export`."""

    name = "export"
    group = "ship"
    examples = (
        ("kws_rvp as=cmake", "a CMake project in build/"),
        ("kws_rvp as=zephyr to=../app/modules/kws target=nucleo-f446re", "a Zephyr module in a folder of yours"),
        ("", "the forms"),
    )
    keys_help = (
        ("as", "the form; without it, the forms are listed"),
        ("to", "the folder; default build/NAME/TARGET/export/FORM"),
    )
    variables = RECIPE_VARIABLES
    names = "recipe"
    own_variables = (_AS, _TO)
    doc_purpose = "write a recipe's verified sources as a CMake project, Zephyr module, Arduino library, …"
    doc_usage = "[NAME as=FORM [to=FOLDER] [target=… model=… set=…]] [--json]"
    doc_description = (
        "Runs the recipe first, up to verify. A folder with other files in it is an error. docs/how-to/export.md "
        "lists the exported files."
    )
    cmd_options = (JSON,)

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Export, or list the forms. Returns the exit code."""
        values = {**self.own_values, **variables()}
        return report_errors(lambda: self._run(values, pos_args, as_json=opt_values["json"]))

    def _run(self, values: dict[str, str], named: Sequence[str], *, as_json: bool) -> int:
        project = current_project()
        form = values.pop(_AS, "").strip()
        to = values.pop(_TO, "").strip()
        if not form:
            if named or to or "recipe" in values:
                raise PipelineError("doit export needs as=FORM", hint=f"forms: {', '.join(_forms(project))}")
            return _list(project, as_json)
        recipe = single_recipe("export", values, named)
        display = ProgressDisplay()
        try:
            result = export(recipe, form, to, values, project=project, display=display)
        except StageError as error:
            raise PipelineError(error.message, hint=error.hint) from None
        finally:
            display.close()
        print(json.dumps(result, indent=1) if as_json else _summary(result))
        return 0


def export(
    recipe: str,
    form_name: str,
    to: str = "",
    overrides: Mapping[str, str] | None = None,
    *,
    project: Project,
    display: Any = None,
    store: Path | None = None,
) -> dict[str, Any]:
    """Run the recipe up to verify and write its sources to a folder.

    Returns {recipe, target, form, overrides: `model=… set=…` or '', folder, files: their number, changed: number of
    new or changed files, run: a first command or '', note: sentences about it or ''}.
    Raises PipelineError, StageError; the folder is then unchanged.
    """
    form = registry.form_of(form_name, _forms(project))
    overrides = dict(overrides or {})
    loaded = _single(load_recipes(recipe, root=project, registry=registry_of(project), variables=overrides))
    options: Any = loaded.recipe.config("emit")
    prefix = options.prefix if options is not None else ""
    name = identifier(loaded.title) if prefix in ("", _USUAL_PREFIX) else prefix
    missing = [kind for kind in ("emit", "compile", "simulate") if kind not in loaded.chain.names]
    if missing:
        raise PipelineError(
            f"recipe '{loaded.title}' has no stage {missing[0]}: it cannot be exported",
            hint="an export has the sources and a test with its expected output",
        )
    place = (
        Path(to)
        if to
        else Path("build") / loaded.recipe.name / loaded.variant / loaded.target.name / "export" / form_name
    )
    shown = escape.name(project.display_path(project.root / place))
    changes = " ".join(f"{key}={overrides[key].strip()}" for key in ("model", "set") if overrides.get(key, "").strip())
    facts = {"recipe": loaded.title, "target": loaded.target.name, "form": form_name, "overrides": changes}
    # Check the folder before anything runs.
    if not to:
        _check_build_folder(project, place, shown)
    folder.check(project.root / place, facts, shown)
    last = "verify" if "verify" in loaded.chain.names else "simulate"
    options_set = f"stages.emit.prefix={name},stages.emit.weights={form.weights}"
    overrides["set"] = ",".join(filter(None, (overrides.get("set", ""), options_set)))
    run = run_recipe(recipe, overrides, until=last, root=project, display=display, store=store, install=install_group)
    content = content_of(
        run.artifacts,
        loaded.target,
        form=form,
        title=loaded.title,
        caller=getattr(options, "arena", "static") == "caller",
        version=str(pyproject_table("project")["version"]),
        overrides=changes,
    )
    files = files_of(form, content)
    changed = folder.write(project.root / place, files, facts, shown)
    form_facts = facts_of(form, content)
    first = {key: form_facts[key] for key in ("run", "note")}
    return {**facts, "folder": str(place), "files": len(files), "changed": changed, **first}


def _check_build_folder(project: Project, place: Path, shown: str) -> None:
    """Raise PipelineError for a folder that links out of build/."""
    try:
        path_below(project.root / "build", project.root / place)
    except OSError as error:
        raise PipelineError(
            f"{shown} cannot be written: {error.strerror}", hint="choose another with to=FOLDER"
        ) from None


def _single(members: tuple[LoadedRecipe, ...]) -> LoadedRecipe:
    """Return the only recipe. Raises PipelineError for several."""
    if len(members) != 1:
        example = members[0].title if members else "NAME:VARIANT"
        raise PipelineError(f"an export needs one recipe, got {len(members)}", hint=f"such as {escape.name(example)}")
    return members[0]


def _forms(project: Project) -> dict[str, Form]:
    """Return all export forms by name, built-in ones first. Raises PipelineError."""
    forms = {name: registry.form_of(name) for name in registry.names()}
    for name, plugin in plugins_of(project)["exports"].items():
        if name in forms:
            raise PipelineError(f"plug-in {plugin.display_name} has the name of a built-in form, '{name}'")
        form = plugin_attribute(plugin, "FORM")
        if not isinstance(form, Form):
            raise PipelineError(
                f"plug-in {plugin.display_name}: its FORM is not a form",
                hint="it must be a stages.delivery.export.form.Form",
            )
        forms[name] = form
    return forms


def _list(project: Project, as_json: bool) -> int:
    records = [{"name": name, "what": form.title} for name, form in _forms(project).items()]
    print(json.dumps(records, indent=1) if as_json else "\n".join(in_columns(records, ("name", "what"))))
    return 0


def _summary(result: Mapping[str, Any]) -> str:
    source = f"{result['recipe']} for {result['target']} as {result['form']}"
    change = f"{result['changed']} of them new or changed" if result["changed"] else "none changed"
    lines = [f"{source}: {result['folder']}, {result['files']} files, {change}"]
    lines += [f"first: {result['run']}"] if result["run"] else []
    lines += [result["note"]] if result["note"] else []
    return "\n".join(map(escape.line, lines))
