"""`doit export`: write a recipe's sources as a project of a build system."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.api import run_recipe
from pipeline.commands.catalogue.listing import in_columns
from pipeline.commands.command import JSON, Command, variables
from pipeline.commands.target_results import print_results
from pipeline.documents.overrides import RECIPE_VARIABLES, with_assignments
from pipeline.documents.pyproject import pyproject_table
from pipeline.errors import PipelineError, RecipeError
from pipeline.keys.package_groups import install_group
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import plugin_attribute
from pipeline.plugins.registry import registry_of
from pipeline.project import Project, current_project
from pipeline.recipes.loader import LoadedRecipe, load_recipes
from stages.delivery.export import folder, registry
from stages.delivery.export.collect import Run, content_of
from stages.delivery.export.form import Form
from stages.delivery.export.names import identifier
from stages.delivery.export.render import facts_of, files_of
from stages.support.messages import escape
from stages.support.system.path_below import path_below

_AS, _TO, _ARENAS = "as", "to", "arenas"
_APART, _SHARED = "apart", "shared"
_DEFAULT_PREFIX = "model"


class Export(Command):
    """`doit export`."""

    name = "export"
    group = "ship"
    examples = (
        ("kws_rvp as=cmake", "a CMake project in build/"),
        ("kws_rvp as=zephyr to=../app/modules/kws target=nucleo-f446re", "a Zephyr module in a folder of yours"),
        ("kws_rvp,vww_rvp as=cmake arenas=shared", "two networks as one library"),
        ("", "the forms"),
    )
    keys_help = (
        ("as", "the form; without it, the forms are listed"),
        ("to", "the folder; default build/NAME/TARGET/export/FORM"),
        ("arenas", "of several networks: apart (default), or shared: one memory, and one network runs at a time"),
    )
    variables = RECIPE_VARIABLES
    names = "recipe"
    own_variables = (_AS, _TO, _ARENAS)
    doc_purpose = "write a recipe's verified sources as a CMake project, Zephyr module, Arduino library, …"
    doc_usage = "[NAME[,NAME...] as=FORM [to=FOLDER] [arenas=apart|shared] [target=… model=… set=…]] [--json]"
    doc_description = (
        "Runs the recipe first, up to verify. A folder with other files in it is an error. Several recipes for one "
        "target give one export, with the kernels once. docs/how-to/export.md lists the exported files."
    )
    cmd_options = (JSON,)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        values, project = {**self.own_values, **variables()}, current_project()
        form, to, arenas = (values.pop(key, "").strip() for key in (_AS, _TO, _ARENAS))
        if not form:
            if named or to or arenas or "recipe" in values:
                raise PipelineError("doit export needs as=FORM", hint=f"forms: {', '.join(_forms(project))}")
            return _list(project, options["json"])
        recipes = [name.strip() for name in (*named, *values.pop("recipe", "").split(",")) if name.strip()]
        if not recipes:
            raise RecipeError("no recipe is named: use `doit export NAME`")
        print_results(
            values,
            lambda of_target, display: export(
                recipes, form, to, of_target, arenas=arenas, project=project, display=display
            ),
            _summary,
            as_json=options["json"],
            file=f"to={escape.name(to, 200)}: a folder has one target" if to else "",
        )
        return 0


@dataclass(frozen=True)
class _Recipe:
    """A recipe to export: `name` as typed, and the prefix of its C names."""

    name: str
    loaded: LoadedRecipe
    prefix: str

    @property
    def option(self) -> str:
        """Value of emit's option `arena`."""
        return str(getattr(self.loaded.recipe.config("emit"), "arena", "static"))


def export(
    recipes: str | Sequence[str],
    form_name: str,
    to: str = "",
    overrides: Mapping[str, str] | None = None,
    *,
    arenas: str = "",
    project: Project,
    display: Any = None,
    store: Path | None = None,
) -> dict[str, Any]:
    """Run one or several recipes for one target up to verify; write the sources to a folder.

    arenas  `shared` if the networks use the same memory, else `apart` or ''

    Returns {recipe: names joined by `,`, target, form, overrides: `model=… set=… arenas=…` or '', folder, files: their
    number, changed: number of new or changed files, run: a first command or '', note: sentences about it or ''}.
    Raises PipelineError, StageError; the folder is then unchanged.
    """
    forms = _forms(project)
    form = registry.form_of(form_name, forms)
    overrides = dict(overrides or {})
    names = [recipes] if isinstance(recipes, str) else list(recipes)
    share = _is_shared(arenas, names)
    members = [_recipe(name, project, overrides) for name in names]
    _check_together(members, forms, form_name, overrides)
    first = members[0].loaded
    target, name = first.target, identifier("_".join(member.prefix for member in members))
    name = members[0].prefix if len(members) == 1 else name
    of_recipe = Path(first.recipe.name, first.variant) if len(members) == 1 else Path(name)
    place = Path(to) if to else Path("build") / of_recipe / target.name / "export" / form_name
    shown = escape.name(project.display_path(project.root / place))
    changes = " ".join(f"{key}={overrides[key].strip()}" for key in ("model", "set") if overrides.get(key, "").strip())
    changes = f"{changes} arenas=shared".strip() if share else changes
    titles = ",".join(member.loaded.title for member in members)
    facts = {"recipe": titles, "target": target.name, "form": form_name, "overrides": changes}
    # Check the folder before anything runs.
    if not to:
        _check_build_folder(project, place, shown)
    folder.check(project.root / place, facts, shown)
    runs = []
    for member in members:
        options = {"prefix": member.prefix, "weights": form.weights, **({"arena": "caller"} if share else {})}
        if getattr(member.loaded.recipe.config("emit"), "is_blob", False):
            options |= {"weights": "caller", "blob_array": str(form.weights == "c").lower()}
        options = {f"stages.emit.{key}": value for key, value in options.items()}
        values = {**overrides, "set": with_assignments(overrides.get("set", ""), options)}
        last = "verify" if "verify" in member.loaded.sequence.names else "simulate"
        run = run_recipe(
            member.name,
            values,
            until=last,
            root=project,
            display=display,
            store=store,
            install=install_group,
            record=False,
        )
        runs.append(Run(run.artifacts, member.loaded.title, share or member.option == "caller"))
    content = content_of(
        runs,
        target,
        form=form,
        version=str(pyproject_table("project")["version"]),
        name=name,
        overrides=changes,
        share=share,
    )
    files = files_of(form, content)
    changed = folder.write(project.root / place, files, facts, shown)
    form_facts = facts_of(form, content)
    command = {key: form_facts[key] for key in ("run", "note")}
    return {**facts, "folder": str(place), "files": len(files), "changed": changed, **command}


def _is_shared(arenas: str, names: Sequence[str]) -> bool:
    """Return whether the networks share their arenas. Raises PipelineError for a wrong value."""
    known = (_APART, _SHARED)
    if arenas and arenas not in known:
        raise PipelineError(f"arenas={escape.name(arenas)}: expected {' or '.join(known)}")
    if arenas == _SHARED and len(names) == 1:
        raise PipelineError(
            f"arenas={_SHARED} needs several recipes, got {escape.name(names[0])}",
            hint="`doit export A,B arenas=shared as=FORM` exports two",
        )
    return arenas == _SHARED


def _recipe(name: str, project: Project, overrides: Mapping[str, str]) -> _Recipe:
    """Load a recipe. Raises PipelineError if it cannot be exported."""
    loaded = _single(load_recipes(name, root=project, registry=registry_of(project), variables=overrides))
    missing = [kind for kind in ("emit", "compile", "simulate") if kind not in loaded.sequence.names]
    if missing:
        raise PipelineError(
            f"recipe '{loaded.title}' has no stage {missing[0]}: it cannot be exported",
            hint="an export has the sources and a test with its expected output",
        )
    prefix = str(getattr(loaded.recipe.config("emit"), "prefix", ""))
    return _Recipe(name, loaded, identifier(loaded.title) if prefix in ("", _DEFAULT_PREFIX) else prefix)


def _check_together(
    members: Sequence[_Recipe], forms: Mapping[str, Form], form_name: str, overrides: Mapping[str, str]
) -> None:
    """Raise PipelineError if several recipes cannot be in one export."""
    if len(members) == 1:
        return
    titles = [escape.name(member.loaded.title) for member in members]
    for title, times in Counter(titles).items():
        if times > 1:
            raise PipelineError(f"{title} is named {times} times", hint="an export has each recipe once")
    able = [name for name, form in forms.items() if form.several]
    if form_name not in able:
        raise PipelineError(
            f"as={form_name} takes one recipe, got {', '.join(titles)}",
            hint=f"export each with to=FOLDER; forms for several: {', '.join(sorted(able))}",
        )
    if overrides.get("model", "").strip():
        raise PipelineError(f"model= replaces the model of one recipe, got {', '.join(titles)}")
    targets = {member.loaded.target.name: title for member, title in zip(members, titles, strict=True)}
    if len(targets) > 1:
        uses = ", ".join(f"{title} is for {target}" for target, title in targets.items())
        raise PipelineError(f"recipes of one export need the same target: {uses}", hint="add target=NAME")
    # Names in upper case are those of macros.
    counts = Counter(member.prefix.upper() for member in members)
    for member in members:
        if counts[member.prefix.upper()] > 1:
            same = [
                title
                for other, title in zip(members, titles, strict=True)
                if other.prefix.upper() == member.prefix.upper()
            ]
            raise PipelineError(
                f"{' and '.join(same)} have the same prefix of C names, '{member.prefix}'",
                hint="set another in one of the recipes, such as `stages: {emit: {prefix: second}}`",
            )
        if member.prefix.lower() == "kernels":
            raise PipelineError("the prefix 'kernels' is the name of a folder of the export", hint="choose another")


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
        raise PipelineError(
            f"an export needs one variant, but the name matches {len(members)}",
            hint=f"name one, such as {escape.name(example)}",
        )
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
                f"plug-in {plugin.display_name}: FORM has the wrong type",
                hint="it must be a stages.delivery.export.form.Form",
            )
        forms[name] = form
    return forms


def _list(project: Project, as_json: bool) -> int:
    records = [{"name": name, "what": form.title} for name, form in _forms(project).items()]
    print(json.dumps(records, indent=1) if as_json else "\n".join(in_columns(records, ("name", "what"))))
    return 0


def _summary(result: Mapping[str, Any]) -> list[str]:
    source = f"{result['recipe']} for {result['target']} as {result['form']}"
    change = f"{result['changed']} of them new or changed" if result["changed"] else "none changed"
    lines = [f"{source}: {result['folder']}, {result['files']} files, {change}"]
    lines += [f"first: {result['run']}"] if result["run"] else []
    lines += [result["note"]] if result["note"] else []
    return lines
