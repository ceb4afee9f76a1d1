"""`doit export`: a recipe's sources as a CMake project, a Zephyr module, an Arduino library and so on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.api import run_recipe
from pipeline.commands.catalogue.listing import in_columns
from pipeline.commands.command import JSON, Command, the_recipe, variables
from pipeline.commands.pyproject import in_pyproject
from pipeline.commands.reported import reported
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
from stages.export import folder, registry
from stages.export.content import content_of
from stages.export.form import Form
from stages.export.names import identifier
from stages.export.render import facts_of, files_of
from stages.messages import escape
from stages.system.below import below

_AS, _TO = "as", "to"
_USUAL_PREFIX = "model"


class Export(Command):
    """`doit export`."""

    name = "export"
    variables = RECIPE_VARIABLES
    names = "recipe"
    own = (_AS, _TO)
    doc_purpose = "write a recipe's verified sources as a CMake project, Zephyr module, Arduino library, …"
    doc_usage = "[NAME as=FORM [to=FOLDER] [target=… model=… set=…]] [--json]"
    doc_description = (
        "Without as= it lists the forms. The folder is build/RECIPE/TARGET/export/FORM unless to= names one; one with "
        "files of yours is refused. docs/how-to/export.md shows what is in it."
    )
    cmd_options = (JSON,)

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Export, or list the forms. Returns the exit code."""
        given = {**self.given, **variables()}
        return reported(lambda: self._run(given, pos_args, as_json=opt_values["json"]))

    def _run(self, given: dict[str, str], named: Sequence[str], *, as_json: bool) -> int:
        project = current_project()
        form = given.pop(_AS, "").strip()
        to = given.pop(_TO, "").strip()
        if not form:
            if named or to or "recipe" in given:
                raise PipelineError("as what? as=FORM", hint=f"forms: {', '.join(_forms(project))}")
            return _list(project, as_json)
        recipe = the_recipe("export", given, named)
        display = ProgressDisplay()
        try:
            made = export(recipe, form, to, given, project=project, display=display)
        except StageError as error:
            raise PipelineError(error.message, hint=error.hint) from None
        finally:
            display.close()
        print(json.dumps(made, indent=1) if as_json else _told(made))
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
    """Run the recipe as far as verify, and write its sources into a folder; returns what was done.

    {recipe, target, form, overrides: `model=… set=…` or '', folder, files: how many, changed: how many of them, run: a
    first command or '', note: sentences about it or ''}.
    Raises PipelineError, StageError; the folder is then as it was.
    """
    form = registry.form_of(form_name, _forms(project))
    overrides = dict(overrides or {})
    loaded = _one(load_recipes(recipe, root=project, registry=registry_of(project), variables=overrides))
    options: Any = loaded.recipe.config("emit")
    prefix = options.prefix if options is not None else ""
    name = identifier(loaded.title) if prefix in ("", _USUAL_PREFIX) else prefix
    lacking = [kind for kind in ("emit", "compile", "simulate") if kind not in loaded.chain.names]
    if lacking:
        raise PipelineError(
            f"recipe '{loaded.title}' leaves out {lacking[0]}: there is nothing to export, or no output to expect",
            hint="an export has the sources and a test with its expected output",
        )
    place = (
        Path(to)
        if to
        else Path("build") / loaded.recipe.name / loaded.variant / loaded.target.name / "export" / form_name
    )
    shown = escape.name(project.display_path(project.root / place))
    otherwise = " ".join(
        f"{key}={overrides[key].strip()}" for key in ("model", "set") if overrides.get(key, "").strip()
    )
    facts = {"recipe": loaded.title, "target": loaded.target.name, "form": form_name, "overrides": otherwise}
    # Before anything runs.
    if not to:
        _check_build_folder(project, place, shown)
    folder.check(project.root / place, facts, shown)
    last = "verify" if "verify" in loaded.chain.names else "simulate"
    own = f"stages.emit.prefix={name},stages.emit.weights={form.weights}"
    overrides["set"] = ",".join(filter(None, (overrides.get("set", ""), own)))
    run = run_recipe(recipe, overrides, until=last, root=project, display=display, store=store, install=install_group)
    content = content_of(
        run.artifacts,
        loaded.target,
        form=form,
        title=loaded.title,
        caller=getattr(options, "arena", "static") == "caller",
        version=str(in_pyproject("project")["version"]),
        overrides=otherwise,
    )
    files = files_of(form, content)
    changed = folder.write(project.root / place, files, facts, shown)
    told = facts_of(form, content)
    first = {key: told[key] for key in ("run", "note")}
    return {**facts, "folder": str(place), "files": len(files), "changed": changed, **first}


def _check_build_folder(project: Project, place: Path, shown: str) -> None:
    try:
        below(project.root / "build", project.root / place)
    except OSError as error:
        raise PipelineError(f"{shown} cannot be written: {error.strerror}", hint="to=FOLDER names another") from None


def _one(found: tuple[LoadedRecipe, ...]) -> LoadedRecipe:
    if len(found) != 1:
        example = found[0].title if found else "NAME:VARIANT"
        raise PipelineError(
            f"that is {len(found)} recipes; one export is of one", hint=f"such as {escape.name(example)}"
        )
    return found[0]


def _forms(project: Project) -> dict[str, Form]:
    """All forms by their names: Firmline's, then those of plug-ins. Raises PipelineError."""
    found = {name: registry.form_of(name) for name in registry.names()}
    for name, plugin in plugins_of(project)["exports"].items():
        if name in found:
            raise PipelineError(f"plug-in {plugin.display_name} has the name of a form of Firmline, '{name}'")
        form = plugin_attribute(plugin, "FORM")
        if not isinstance(form, Form):
            raise PipelineError(f"plug-in {plugin.display_name}: its FORM is no form", hint="stages.export.form.Form")
        found[name] = form
    return found


def _list(project: Project, as_json: bool) -> int:
    records = [{"name": name, "what": form.title} for name, form in _forms(project).items()]
    print(json.dumps(records, indent=1) if as_json else "\n".join(in_columns(records, ("name", "what"))))
    return 0


def _told(made: Mapping[str, Any]) -> str:
    what = f"{made['recipe']} for {made['target']} as {made['form']}"
    change = f"{made['changed']} of them new or changed" if made["changed"] else "all as they were"
    lines = [f"{what}: {made['folder']}, {made['files']} files, {change}"]
    lines += [f"first: {made['run']}"] if made["run"] else []
    lines += [made["note"]] if made["note"] else []
    return "\n".join(map(escape.line, lines))
