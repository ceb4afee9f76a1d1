"""Writes the figures of docs/quantization.md anew, of today's kernels; texts stay:

    python -m tests.quantization_page

It runs the search of `digits_ptq`, the recipes in recipes/float and tests.float_models, which say where the networks
are. What the store has is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pipeline.api import run_recipe
from pipeline.commands.search import Measured, search
from stages.system.installation import INSTALLATION as ROOT
from tests.float_models import NETWORKS
from tests.float_models import row as compared

PAGE = ROOT / "docs" / "quantization.md"
SEARCHED, TARGET = "digits_ptq", "rv64-rvp"
Row = Sequence[str]


def rewritten(page: str, begins: str, figures: Callable[[Row], Row]) -> str:
    """The page with other cells in the table whose head line begins so; `figures` has a row's cells, and gives them."""
    before, head, rest = page.partition(f"\n| {begins} |")
    assert head, begins
    table, gap, after = rest.partition("\n\n")
    first, rule, *rows = table.split("\n")
    made = [f"| {' | '.join(figures([cell.strip() for cell in row.strip('|').split('|')]))} |" for row in rows]
    return "".join((before, head, "\n".join((first, rule, *made)), gap, after))


def of_search(found: Sequence[Measured]) -> Callable[[Row], Row]:
    """Rows of the candidates that the table has."""
    by_name = {one.candidate.name: one for one in found}

    def figures(row: Row) -> Row:
        one = by_name[row[0]]
        assert not one.error, one.error
        return row[0], f"{one.loss:.2f}", f"{one.snr:.1f}", f"{one.instructions:,}", f"{one.ram:,}", f"{one.rom:,}"

    return figures


def of_recipe(row: Row) -> Row:
    """A row of a recipe in recipes/float: its target, what is not int8, instructions, RAM, ROM and noise."""
    recipe, _, what, *_ = row
    done = run_recipe(recipe.strip("`"))
    report = done.report
    assert report is not None
    numbers = (report["instructions"]["total"], report["memory"]["ram_bytes"], report["memory"]["rom_bytes"])
    found = report["quantization"]
    noise = f"{found['snr']:.1f} dB" if found else ""
    return recipe, done.target, what, *(f"{number:,}" for number in numbers), noise


def of_network(row: Row) -> Row:
    """A row of tests.float_models, without its target."""
    network = next(one for one in NETWORKS if one.name == row[0])
    name, _, *figures = compared(network, TARGET, ROOT / "build")
    return name, *(re.sub(r"(\d)%$", r"\1 %", cell) or "no classes" for cell in figures)


def main() -> None:
    """Raises PipelineError for a recipe that cannot be run."""
    page = PAGE.read_text(encoding="utf-8")
    found, _ = search(SEARCHED)
    page = rewritten(page, "candidate", of_search(found))
    page = rewritten(page, "recipe", of_recipe)
    page = rewritten(page, "network | mismatches against LiteRT", of_network)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
