"""Rule of advice about memory regions of different speed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stages.lower.arena.traffic import reads_of_weights, windows_of
from stages.report.advice.facts import Advice, Facts, percent, run_with
from stages.report.advice.time_rules import LEAST
from stages.report.html.memory import short_name

_NARROW, _RAM = "stages.tensorize.narrow_weights=true", "stages.tensorize.optimize_for=ram"


@dataclass(frozen=True)
class _Row:
    """A row of report.json's `arena` or `weights`.

    part      arena or weights
    accesses  bytes read and written per inference, estimated from shapes as emit does
    faster    the fastest region that may hold it, if its own is slower; else ''
    """

    part: str
    row: Mapping[str, Any]
    accesses: int
    faster: str


def slow_memory(facts: Facts) -> Advice | None:
    """Much-read buffers or weights lie in a slower region than one that may hold them."""
    rows = list(_rows(facts))
    slow = sorted((row for row in rows if row.faster), key=lambda row: -row.accesses)
    if not slow:
        return None
    first = slow[0]
    region, part = first.row["region"], first.part
    there = [row for row in slow if (row.row["region"], row.part) == (region, part)]
    accesses = sum(row.accesses for row in there)
    total = sum(row.accesses for row in rows)
    command = _command(facts, first, there)
    if command is None or accesses < LEAST * total:
        return None
    size = sum(int(row.row["bytes"]) for row in there)
    what = f"{len(there)} {'constant' if part == 'weights' else 'buffer'}{'s' * (len(there) > 1)} of {size:,} bytes"
    reason = (
        f"by memory rules of the recipe; {first.faster} has {_free(facts, first.faster):,} bytes free"
        if (region, part) in facts.ruled
        else f"because {first.faster} is too small for all"
    )
    sentence = (
        f"{what} {'are' if len(there) > 1 else 'is'} in {region}, which is slower than {first.faster}, {reason}. About "
        f"{percent(accesses / total)} of all bytes that an inference reads and writes are there, most of them in "
        f"{short_name(first.row['name'])}"
    )
    return Advice("time", None, sentence, None, run_with(command))


def _command(facts: Facts, first: _Row, there: list[_Row]) -> str | None:
    """Return the assignment that can move the most-read row; None without such a figure."""
    ruled = facts.ruled & {(first.row["region"], first.part), (first.faster, first.part)}
    if (first.row["region"], first.part) in ruled:
        return "memory.rules=[]" if _free(facts, first.faster) >= first.row["bytes"] else None
    if ruled:
        return None
    if first.part == "arena":
        return None if facts.plan.get("objective") == "ram" else _RAM
    packable = any(facts.layer_plan(index)["packable"] for row in there for index in row.row["layers"])
    return _NARROW if packable else None


def _free(facts: Facts, region: str) -> int:
    """Return the bytes of a region that the linked firmware leaves; 0 if none is linked."""
    regions = facts.report["memory"].get("regions", ())
    return sum(int(entry["length"]) - int(entry["used"]) for entry in regions if entry["name"] == region)


def _rows(facts: Facts) -> Iterator[_Row]:
    """Yield the buffers and constants if regions differ in speed.

    An accelerator's memory has its own plan.
    """
    of_engine = any(entry["program"] for entry in facts.layers.values())
    if of_engine or len({region["speed"] for region in facts.regions.values()}) < 2:
        return
    for row in facts.report["arena"]:
        count = _scratch(facts, row) if row["kind"] == "scratch" else _tensors(facts, row)
        yield _Row("arena", row, count, _faster(facts, row["region"], "arena"))
    graph = facts.computed
    for row in facts.report["weights"]:
        layers = [layer for layer in graph.layers if layer.index in row["layers"]]
        reads = sum(reads_of_weights(graph, layer, _constants(facts, layer.index)) for layer in layers)
        yield _Row("weights", row, row["bytes"] * reads, _faster(facts, row["region"], "weights"))


def _tensors(facts: Facts, row: Mapping[str, Any]) -> int:
    """Return a buffer's traffic: written once, read for each window of each reader."""
    graph, count = facts.computed, 0
    for name in (held["name"] for held in row["holds"]):
        readers = [layer for layer in graph.layers if name in layer.inputs]
        readers = [layer for layer in readers if facts.layer_plan(layer.index)["kernel"] != "alias"]
        count += graph.tensors[name].bytes * (1 + sum(map(windows_of, readers)))
    return count


def _scratch(facts: Facts, row: Mapping[str, Any]) -> int:
    """Return twice the scratch's share of its layer's reads, but at least twice its size."""
    index = int(row["name"].split(":")[1])
    layer, tensors = facts.computed.layers[index], facts.computed.tensors
    read = sum(tensors[name].bytes for name in layer.inputs) * windows_of(layer)
    total = sum(other["bytes"] for other in facts.report["arena"] if other["name"].startswith(f"scratch:{index}:"))
    size = int(row["bytes"])
    return 2 * max(size, read * size // max(int(total), 1))


def _constants(facts: Facts, index: int) -> int:
    """Return the bytes of a layer's constants."""
    return sum(int(row["bytes"]) for row in facts.report["weights"] if index in row["layers"])


def _faster(facts: Facts, region: str, part: str) -> str:
    """Return the fastest region that may hold a part, if the row's region is slower; else ''."""
    if region not in facts.regions:
        return ""
    able = [name for name, other in facts.regions.items() if part in other["holds"]]
    fastest = min(able, key=lambda name: facts.regions[name]["speed"], default=region)
    return fastest if facts.regions[fastest]["speed"] < facts.regions[region]["speed"] else ""
