"""Cycles of a target with an accelerator: measured, by unit, beside what tensorize predicted; who worked when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

PICTURE = "timeline.svg"
"""Beside report.md."""

UNITS = ("total", "engine", "dma", "core", "waiting")
_FAR = 2  # a prediction that is off by more than this factor is a warning
_GAP = 64  # cycles between operations of a unit for a layer that are shown as one


def cycles(counts: dict[str, Any], plan: dict[str, Any], target: dict[str, Any]) -> dict[str, Any] | None:
    """`cycles` of report.json; None for a target without an accelerator, or where nothing was simulated.

    Of the first inference. `core` and `waiting` are all of the total: what the core works, and what it waits for the
    others; `engine` and `dma` are what these work beside it.
    """
    inferences = counts.get("inferences") or [{}]
    if "units" not in inferences[0] or target.get("accelerator") is None:
        return None
    kind, first = target["accelerator"]["kind"], inferences[0]
    measured = _measured(first["units"], kind, first["total"], None)
    predicted = [layer.get("predicted") for layer in plan["layers"]]
    return {
        **measured,
        "predicted": {unit: sum(one[_key(unit)] for one in predicted if one) for unit in UNITS},
        "layers": [
            {
                "index": layer["index"],
                **_measured(first["units"], kind, first["layers"][position], position),
                "predicted": {unit: layer["predicted"][_key(unit)] for unit in UNITS} if layer["predicted"] else None,
            }
            for position, layer in enumerate(plan["layers"])
        ],
        "search": plan.get("search"),
        "assumptions": _assumptions(plan, target["accelerator"]),
        "timeline": _merged(counts.get("timeline", []), kind),
    }


def far_off(found: dict[str, Any]) -> list[str]:
    """Return a warning if measured and predicted cycles (of `cycles`) differ by more than a factor of 2."""
    measured, predicted = found["total"], found["predicted"]["total"]
    if max(measured, predicted) <= _FAR * min(measured, predicted):
        return []

    def apart(layer: dict[str, Any]) -> int:
        told: int = layer["predicted"]["total"] if layer["predicted"] else 0
        return abs(int(layer["total"]) - told)

    worst = max(found["layers"], key=apart)
    expected = f"{worst['predicted']['total']:,}" if worst["predicted"] else "none"
    most = f"the largest difference is in layer {worst['index']}, {worst['total']:,} cycles ({expected} predicted)"
    both = f"{measured:,} cycles, {predicted:,} predicted: off by more than a factor of {_FAR}"
    return [f"{both}, so kernels and tiles may be badly chosen; {most}"]


def searched(search: dict[str, Any]) -> str:
    """How good the plan of tiles and places is, and how that is known."""
    cycles, bound = search["cycles"], search["bound"]
    status = {
        "optimum": "the optimum",
        "gap": f"proven to be within {search['gap']:.1%} of the optimum",
        "limit": "as good as the limit allowed" + (f", {1 - bound / cycles:.1%} above the bound" if bound else ""),
        "none": "no solution",
    }[search["status"]]
    found = f"{status} of single layers, {search['nodes']:,} of at most {search['node_limit']:,} nodes"
    if search["taken"] == "greedy":
        fits = "is shorter over the network" if "solver" in search["candidates"] else "fits, as that does not"
        found += f"; taken: the greedy plan, which {fits}"
    elif search["taken"] == "apart":
        found += "; taken: no tensor stays in the engine's memory, where no other plan fits"
    return found


def _key(unit: str) -> str:
    return "cycles" if unit == "total" else unit


def _measured(units: dict[str, Any], kind: str, total: int, layer: int | None) -> dict[str, int]:
    def busy(name: str) -> int:
        one = units.get(name)
        return 0 if one is None else int(one["total"] if layer is None else one["layers"][layer])

    waiting = busy("waiting")
    return {"total": total, "engine": busy(kind), "dma": busy("dma"), "core": total - waiting, "waiting": waiting}


def _assumptions(plan: dict[str, Any], accelerator: dict[str, Any]) -> list[str]:
    found = ["one clock; the core takes a cycle for each instruction"]
    dma = accelerator["dma"]
    if dma is None:
        found.append("no DMA: the core copies")
    else:
        found.append(
            f"DMA, as the target declares it: {dma['bytes_per_cycle']} bytes a cycle, {dma['fixed_cycles']} cycles for "
            f"a transfer and {dma['run_cycles']} for each of its runs, {dma['queue']} in the queue"
        )
    attachment = plan.get("attachment") or {}
    return [*found, "memories answer without waiting, whoever else reads them", *attachment.get("assumptions", [])]


def _merged(timeline: Iterable[Sequence[Any]], kind: str) -> list[dict[str, Any]]:
    """Stretches of work and of waiting, operations that follow each other closely as one."""
    found: list[dict[str, Any]] = []
    last: dict[tuple[str, int], dict[str, Any]] = {}
    for unit, layer, begin, end, *_ in timeline:
        name = "engine" if unit == kind else "waiting" if unit.startswith("wait-") else unit
        before = last.get((name, layer))
        if before is not None and begin - before["end"] <= _GAP and name != "core":
            before["end"] = max(before["end"], end)
            continue
        found.append({"unit": name, "layer": layer, "begin": begin, "end": end})
        last[name, layer] = found[-1]
    return found
