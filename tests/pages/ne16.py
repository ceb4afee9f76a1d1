"""Where the cycles go on docs/explanation/ne16.md: networks by kind of layer, and by how much they miss their aims."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from stages.support.system.installation import INSTALLATION as ROOT
from tests.pages.tables import Row, counted, number, replaced, rewritten, rows

PAGE = ROOT / "docs/explanation/ne16.md"
BEGINS = "| | 3x3 and others"
# The target of a mode, and its requantize: None is the recipes' own.
MODES = {
    "default (`core`)": ("rv32-ne16", None),
    "`engine`": ("rv32-ne16", "engine"),
    "extended": ("rv32-ne16x", "engine"),
}
RECIPES = {"kws": "kws_ne16", "vww": "vww_ne16", "ic": "ic_ne16", "ad": "ad_ne16", "MobileNet": "mobilenet_ne16"}
KINDS = ("3x3 and others", "depthwise", "1x1", "add", "fully_connected", "core")


def kind(layer: Mapping[str, Any]) -> str:
    """The column of a layer."""
    if layer["kernel"] != "ne16":
        return "core"
    if layer["op"] == "conv2d":
        window = layer["macs"] // (math.prod(layer["shape_out"]) * layer["shape_in"][-1])
        return "1x1" if window == 1 else "3x3 and others"
    return {"depthwise_conv2d": "depthwise"}.get(layer["op"], layer["op"])


def cells(report: Mapping[str, Any]) -> list[str]:
    """Cycles by kind of layer, of all, and of the engine."""
    sums: Counter[str] = Counter()
    for layer in report["layers"]:
        sums[kind(layer)] += layer["instructions"]
    assert set(sums) <= set(KINDS), sums
    numbers = [*(sums[one] for one in KINDS), report["instructions"]["total"], report["cycles"]["engine"]]
    return [f"{one:,}" if one else "" for one in numbers]


def share(page: str, network: str) -> str:
    """Return by how much a network misses the aim in its row of `engine`: `0.1 % (extended 4.2 %)`."""
    table = rows(page, BEGINS)
    place = next(place for place, row in enumerate(table) if row[0] == network)
    _, engine, extended = table[place : place + len(MODES)]
    aim = number(engine[-1])
    ours, extended = (100 * (number(row[-3]) / aim - 1) for row in (engine, extended))
    return f"{ours:.1f} % (extended {extended:.1f} %)"


def told(page: str) -> str:
    """The page whose sentences say what its table has."""
    for network in ("kws", "ad"):
        page = replaced(page, rf"^- {network}, by .*? %\)", f"- {network}, by {share(page, network)}")
    return page


def renewed(page: str) -> str:
    """The page with the figures of today."""
    network = ""

    def figures(row: Row) -> Row:
        nonlocal network
        network = row[0] or network
        target, requantize = MODES[row[1]]
        stages = {"tensorize": {"requantize": requantize}} if requantize else {}
        recipe = {"schema": 1, "name": "ne16_page", "extends": RECIPES[network], "stages": stages}
        return *row[:2], *cells(counted({**recipe, "target": target})), row[-1]

    return told(rewritten(page, BEGINS, figures))
