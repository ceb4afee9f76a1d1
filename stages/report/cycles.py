"""Cycles of a target with accelerator: measured by unit, predicted, as a timeline."""

from collections.abc import Iterable, Sequence
from typing import Any

PICTURE = "timeline.svg"
"""File name of the timeline, next to report.md."""

UNITS = ("total", "engine", "dma", "core", "waiting")
_FAR = 2  # a prediction that is off by more than this factor causes a warning
_GAP = 64  # operations of a unit for one layer are merged if at most so many cycles are between them


def cycles(counts: dict[str, Any], plan: dict[str, Any], target: dict[str, Any]) -> dict[str, Any] | None:
    """Return `cycles` of report.json (first inference); None without accelerator or run.

    The total is `core` (the core works) plus `waiting` (it waits for the other units). `engine` and `dma` are the busy
    cycles of these units, in parallel to the core.
    """
    inferences = counts.get("inferences") or [{}]
    if "units" not in inferences[0] or target.get("accelerator") is None:
        return None
    kind, inference = target["accelerator"]["kind"], inferences[0]
    measured = _measured(inference["units"], kind, inference["total"], None)
    predicted = [layer["predicted"] for layer in plan["layers"] if layer.get("predicted")]
    return {
        **measured,
        "predicted": {unit: sum(units[_key(unit)] for units in predicted) for unit in UNITS},
        "layers": [
            {
                "index": layer["index"],
                **_measured(inference["units"], kind, inference["layers"][position], position),
                "predicted": {unit: layer["predicted"][_key(unit)] for unit in UNITS} if layer["predicted"] else None,
            }
            for position, layer in enumerate(plan["layers"])
        ],
        "search": plan.get("search"),
        "assumptions": _assumptions(plan, target["accelerator"]),
        "timeline": _merged(counts.get("timeline", []), kind),
    }


def far_off(cycles: dict[str, Any]) -> list[str]:
    """Return a warning if measured and predicted cycles differ by more than a factor of 2."""
    measured, predicted = cycles["total"], cycles["predicted"]["total"]
    if max(measured, predicted) <= _FAR * min(measured, predicted):
        return []

    def deviation(layer: dict[str, Any]) -> int:
        predicted_total: int = layer["predicted"]["total"] if layer["predicted"] else 0
        return abs(int(layer["total"]) - predicted_total)

    worst = max(cycles["layers"], key=deviation)
    expected = f"{worst['predicted']['total']:,}" if worst["predicted"] else "none"
    detail = f"the largest difference is in layer {worst['index']}, {worst['total']:,} cycles ({expected} predicted)"
    totals = f"{measured:,} cycles, {predicted:,} predicted: off by more than a factor of {_FAR}"
    return [f"{totals}, so kernels and tiles may be badly chosen; {detail}"]


def searched(search: dict[str, Any]) -> str:
    """Describe how close the tiling plan is to the optimum, and how that was determined."""
    cycles, bound = search["cycles"], search["bound"]
    status = {
        "optimum": "the optimum",
        "gap": f"proven to be within {search['gap']:.1%} of the optimum",
        "limit": "as good as the limit allowed" + (f", {1 - bound / cycles:.1%} above the bound" if bound else ""),
        "none": "no solution",
    }[search["status"]]
    text = f"{status} of single layers, {search['nodes']:,} of at most {search['node_limit']:,} nodes"
    if search["taken"] == "greedy":
        reason = "is faster for the network" if "solver" in search["candidates"] else "fits; the solver's plan does not"
        text += f"; selected: the greedy plan, which {reason}"
    elif search["taken"] == "apart":
        text += "; selected: no tensor stays in the engine's memory, because no other plan fits"
    return text


def _key(unit: str) -> str:
    return "cycles" if unit == "total" else unit


def _measured(units: dict[str, Any], kind: str, total: int, layer: int | None) -> dict[str, int]:
    def busy(name: str) -> int:
        unit = units.get(name)
        return 0 if unit is None else int(unit["total"] if layer is None else unit["layers"][layer])

    waiting = busy("waiting")
    return {"total": total, "engine": busy(kind), "dma": busy("dma"), "core": total - waiting, "waiting": waiting}


def _assumptions(plan: dict[str, Any], accelerator: dict[str, Any]) -> list[str]:
    assumptions = ["one clock; the core executes one instruction per cycle"]
    dma = accelerator["dma"]
    if dma is None:
        assumptions.append("no DMA: the core copies")
    else:
        assumptions.append(
            f"DMA, as the target declares it: {dma['bytes_per_cycle']} bytes per cycle, {dma['fixed_cycles']} cycles "
            f"for a transfer and {dma['run_cycles']} for each of its runs, a queue of {dma['queue']}"
        )
    attachment = plan.get("attachment") or {}
    return [*assumptions, "memories have no wait states and no conflicts", *attachment.get("assumptions", [])]


def _merged(timeline: Iterable[Sequence[Any]], kind: str) -> list[dict[str, Any]]:
    """Merge operations that follow each other closely into intervals of work and of waiting."""
    intervals: list[dict[str, Any]] = []
    latest: dict[tuple[str, int], dict[str, Any]] = {}
    for unit, layer, begin, end, *_ in timeline:
        name = "engine" if unit == kind else "waiting" if unit.startswith("wait-") else unit
        before = latest.get((name, layer))
        if before is not None and begin - before["end"] <= _GAP and name != "core":
            before["end"] = max(before["end"], end)
            continue
        intervals.append({"unit": name, "layer": layer, "begin": begin, "end": end})
        latest[name, layer] = intervals[-1]
    return intervals
