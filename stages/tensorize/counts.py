"""counts.json: what the stage `count` counted of a network's calls.

format     of the file
counts     signature of a layer -> variant -> instructions, or cycles (stages.tensorize.costs)
uncounted  [signature, variant] of the calls that could not be counted
"""

from __future__ import annotations

import json
from pathlib import Path

from stages.tensorize.costs import Costs

FORMAT = 1
FILE = "counts.json"


def save(costs: Costs, folder: Path) -> None:
    """Writes the file: sorted, the same for the same counts."""
    content = {"format": FORMAT, "counts": costs.counts, "uncounted": sorted(map(list, costs.uncounted))}
    (folder / FILE).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load(folder: Path) -> Costs:
    """Reads what `save` wrote: estimates alone where nothing was counted. Raises ValueError for another format."""
    content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    if content["format"] != FORMAT:
        raise ValueError(f"{FILE} has format {content['format']}; this version reads {FORMAT}")
    uncounted = frozenset((layer, variant) for layer, variant in content["uncounted"])
    return Costs(content["counts"], lower_bounds=bool(content["counts"] or uncounted), uncounted=uncounted)
