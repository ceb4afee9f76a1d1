"""The table of networks on docs/tutorials/accelerator.md: each on `rv32-outer16`, and on the core alone."""

from typing import Any

from stages.support.system.installation import INSTALLATION as ROOT
from tests.pages.tables import Row, counted, rewritten

PAGE = ROOT / "docs/tutorials/accelerator.md"
BEGINS = "network | cycles"
ENGINE, CORE = "rv32-outer16", "rv32-rvp"


def run(network: str, target: str) -> dict[str, Any]:
    """The report of a network of the zoo on a target, by the recipe for it."""
    base = "outer16_base" if target == ENGINE else "rvp_base"
    recipe = {"schema": 1, "name": "accelerator_page", "extends": base, "target": target, "model": {"zoo": network}}
    return counted(recipe)


def figures(row: Row) -> Row:
    network = row[0].strip("`")
    found, alone = run(network, ENGINE), run(network, CORE)
    cycles = found["cycles"]
    numbers = (found["instructions"]["total"], cycles["engine"], cycles["waiting"])
    transforms = sum(layer["op"] == "layout" for layer in found["layers"])
    return row[0], *(f"{one:,}" for one in numbers), str(transforms), f"{alone['instructions']['total']:,}"


def renewed(page: str) -> str:
    """The page with the figures of today."""
    return rewritten(page, BEGINS, figures)
