"""The figures of docs/quantization.md: the search of `digits_ptq`, the recipes in recipes/float, tests.float_models.

The latter two say where their networks are; where these are not, their tables stay.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from pipeline.api import run_recipe
from pipeline.commands.search import Measured, search
from stages.system.installation import INSTALLATION as ROOT
from stages.system.pathname import located
from tests.float_models import NETWORKS
from tests.float_models import row as compared
from tests.pages.tables import Row, rewritten

PAGE = ROOT / "docs" / "quantization.md"
SEARCHED, TARGET = "digits_ptq", "rv64-rvp"


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


def there() -> bool:
    """Whether the networks of recipes/float are on this machine."""
    return all(located(network.integers, ROOT).exists() for network in NETWORKS)


def renewed(page: str) -> str:
    """The page with the figures of today."""
    found, _ = search(SEARCHED)
    page = rewritten(page, "candidate", of_search(found))
    if not there():
        print(f"{PAGE.name}: there is no {NETWORKS[0].integers}; two tables stay as they are", file=sys.stderr)
        return page
    page = rewritten(page, "recipe", of_recipe)
    return rewritten(page, "network | mismatches against LiteRT", of_network)
