"""The picture in README.md: `python -m tests.recording` runs a recipe and writes what a terminal shows of it.

What is drawn are the lines and the table of a real run, by rich's own export; nothing is typed by hand.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from pipeline.api import run_recipe
from pipeline.commands.compare.difference import difference
from pipeline.commands.compare.formats import text
from pipeline.plugins.registry import default_registry
from pipeline.runs.session import StageResult
from pipeline.terminal.reporter import stage_line
from stages.base import Stage
from stages.support.system.installation import INSTALLATION as ROOT

PICTURE = ROOT / "docs/recording.svg"
RECIPE, OTHER = "digits_rvp", "cortex-m4"
_WIDTH = 118
_LAYERS = 4


def recorded(build: Path | None = None) -> Console:
    """A console on which the run and the comparison were shown; results go to `build`."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    _typed(console, f"doit run {RECIPE}")
    first = _shown(console, {}, build)
    console.print()
    _typed(console, f"doit compare {RECIPE} {RECIPE}@{OTHER}")
    second = run_recipe(RECIPE, {"target": OTHER}, build=build).report
    assert second is not None
    lines = text(difference((RECIPE, f"{RECIPE}@{OTHER}"), first, second), _LAYERS)
    _said(console, *lines)
    return console


def _shown(console: Console, variables: dict[str, str], build: Path | None) -> dict[str, Any]:
    result = run_recipe(RECIPE, variables, build=build)
    assert result.report is not None
    for stage in result.report["stages"]:
        made = StageResult(stage["kind"], stage["key"], stage["cached"], stage["seconds"])
        _said(console, stage_line(made.kind, made))
    registry = default_registry()
    for stage in result.report["stages"]:
        render: Callable[[dict[str, Any], int], Any] = registry[stage["kind"]].render
        if type(registry[stage["kind"]]).render is not Stage.render:
            # Warnings come and go, such as that of a kernel which is not measured yet.
            console.print(render({**result.report, "warnings": []}, _WIDTH))
    _said(console, f"build/{RECIPE}/{result.report['target']}/")
    return result.report


def _typed(console: Console, command: str) -> None:
    console.print(f"[bold green]$[/] [bold]{command}[/]", highlight=False)


def _said(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, no_wrap=True, overflow="crop")


def picture(console: Console) -> str:
    """The SVG of what a console showed; it loads nothing, also no font."""
    made = console.export_svg(title="firmline", unique_id="firmline", clear=False)
    return re.sub(r"\n\s*@font-face \{.*?\}(?=\n)", "", made, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(picture(recorded()))
    print(PICTURE.relative_to(ROOT))
