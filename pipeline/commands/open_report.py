"""`doit open NAME`: show the report of a recipe's last run in a browser."""

import json
import os
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.commands.command import JSON, Command, selected_names, variables
from pipeline.errors import PipelineError, RecipeError
from pipeline.recipes.recipe_arguments import recipes_and_stages
from pipeline.runs.workspace import Workspace
from stages.support.messages import escape

_PAGE, _MATRIX_PAGE = "report.html", "matrix.html"


class Open(Command):
    """`doit open NAME`."""

    name = "open"
    group = "look"
    names = "recipes"
    examples = (
        ("kws_rvp", "the report of the last run"),
        ("kws_rvp target=cortex-m4", "that on another core"),
        ("", "the newest report of all recipes"),
    )
    variables = ("recipe", "target", "board")
    doc_purpose = "open the report of a recipe in a browser"
    doc_usage = "[NAME...] [target=…] [--json]"
    doc_description = (
        "Prints the path of the report, and opens it if this session has a browser. A matrix has a page for all of its "
        "variants. Runs nothing."
    )
    cmd_options = (JSON,)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        values = variables()
        names = selected_names(named, values, "recipe")
        values.pop("recipe", None)
        workspace = Workspace()
        pages = _pages(workspace, names, values) if names else [_newest(workspace)]
        opened = [show(page) for page in pages]
        shown = [workspace.display_path(page) for page in pages]
        if options["json"]:
            pairs = zip(shown, opened, strict=True)
            print(json.dumps([{"file": file, "opened": is_open} for file, is_open in pairs], indent=1))
        else:
            print("\n".join(map(escape.line, shown)))
        return 0


def show(page: Path) -> bool:
    """Open a page in a browser. Returns False if the session has none.

    A browser in the terminal is not used, except the one that the variable BROWSER names.
    """
    graphical = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    try:
        return bool(graphical) and webbrowser.open(page.as_uri())
    except (webbrowser.Error, OSError):
        return False


def _pages(workspace: Workspace, names: Sequence[str], values: Mapping[str, str]) -> list[Path]:
    """Return the pages of recipes. Raises PipelineError for one that has not run."""
    pages = []
    for name in names:
        for recipe, stage in recipes_and_stages([name], workspace.project, workspace.registry) or [(name, "")]:
            members = workspace.load(f"{recipe}:{stage}" if stage else recipe, values)  # refuses a stage
            head = members[0].recipe.name
            files = [Path(head, member.variant or member.target.name, _PAGE) for member in members]
            if members[0].variant and ":" not in recipe:
                files = [Path(head, _MATRIX_PAGE)]
            pages += [workspace.build / file for file in files]
            for file in files:
                if not (workspace.build / file).is_file():
                    target = "" if members[0].variant or not values else f" target={file.parts[-2]}"
                    raise RecipeError(
                        f"recipe '{escape.name(recipe)}' has no report: "
                        f"{escape.name(workspace.display_path(workspace.build / file))} does not exist",
                        hint=f"`doit run {escape.name(recipe)}{target}` writes it",
                    )
    return pages


def _newest(workspace: Workspace) -> Path:
    pages = [page for pattern in (_PAGE, _MATRIX_PAGE) for page in workspace.build.rglob(pattern)]
    if not pages:
        raise PipelineError("no recipe has run: build/ has no report", hint="`doit run NAME` writes it")
    return max(pages, key=lambda page: page.stat().st_mtime_ns)
