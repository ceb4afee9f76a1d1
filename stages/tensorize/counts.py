"""counts.json: the counts of a network's calls, from the stage count.

format     version of the file
counts     signature -> variant -> instructions or cycles (stages.tensorize.costs)
uncounted  [signature, variant] of calls that cannot be counted
rom        signature -> variant -> [bytes of the layer, names of the code sections that the call shares]
sections   bytes of these sections
"""

import json
from pathlib import Path

from stages.tensorize.costs import CallRom, Costs

FORMAT = 2
FILE = "counts.json"


def save(costs: Costs, folder: Path) -> None:
    """Write the file, sorted. Equal counts give equal bytes."""
    sections: dict[str, int] = {}
    rom: dict[str, dict[str, tuple[int, list[str]]]] = {}
    for (layer, variant), call in costs.rom.items():
        sections |= call.code
        rom.setdefault(layer, {})[variant] = call.own, sorted(call.code)
    content = {
        "format": FORMAT,
        "counts": costs.counts,
        "uncounted": sorted(map(list, costs.uncounted)),
        "rom": rom,
        "sections": sections,
    }
    (folder / FILE).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load(folder: Path) -> Costs:
    """Return the costs that `save` wrote; estimates if nothing was counted.

    Raises ValueError for another format.
    """
    content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    if content["format"] != FORMAT:
        raise ValueError(f"{FILE} has format {content['format']}; this version reads {FORMAT}")
    uncounted = frozenset((layer, variant) for layer, variant in content["uncounted"])
    sections = content["sections"]
    rom = {
        (layer, variant): CallRom(layer_bytes, {name: sections[name] for name in code})
        for layer, row in content["rom"].items()
        for variant, (layer_bytes, code) in row.items()
    }
    is_counted = bool(content["counts"] or uncounted)
    return Costs(content["counts"], lower_bounds=is_counted, uncounted=uncounted, rom=rom)
