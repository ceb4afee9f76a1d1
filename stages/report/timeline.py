"""Picture of core, engine and DMA over one inference, for light and dark pages.

layers      0 |   1    | 2 |  3  ...        bands; numbers if they fit
core        ##       ###   ##               filled: works; the core waits otherwise
engine        ###### ######  ####
dma         ## #  ##      #
            +--------+--------+--------     cycles
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stages.support.messages.escape import shortened
from stages.support.messages.templates import environment

_WIDTH, _LEFT, _RIGHT = 1000, 60, 990
_TOP, _ROW, _BAR = 24, 30, 22
_FINEST = 0.25  # width units; intervals that are closer are merged
_DIGIT = 8  # width units of a number's digit
_TICKS = 8  # at most
UNITS = ("core", "engine", "dma")

Span = tuple[float, float]


def timeline_svg(report: dict[str, Any]) -> str:
    """Return the SVG of report.json's `cycles`, or '' without a timeline."""
    cycles = report.get("cycles")
    if not cycles or not cycles["timeline"] or not cycles["total"]:
        return ""
    from jinja2 import FileSystemLoader

    templates = environment(FileSystemLoader(Path(__file__).parent / "templates"))
    total = cycles["total"]
    context = {
        "width": _WIDTH, "height": _TOP + len(UNITS) * _ROW + 30,
        "left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _TOP + len(UNITS) * _ROW,
        "title": f"{shortened(report['model']['name'])} on {report['target']}: {total:,} cycles",
        "layers": _layers(report["layers"], cycles["layers"], total),
        "rows": [_row(number, unit, cycles) for number, unit in enumerate(UNITS)],
        "ticks": _ticks(total),
    }  # fmt: skip
    return str(templates.get_template("timeline.svg.j2").render(context))


def _x(cycle: float, total: int) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * cycle / total, 2)


def _layers(layers: Iterable[dict[str, Any]], times: Iterable[dict[str, Any]], total: int) -> list[dict[str, Any]]:
    """Return a band for each layer, in order of time; every second one is plain."""
    bands: list[dict[str, Any]] = []
    begin, free = 0, 0.0
    for number, (layer, time) in enumerate(zip(layers, times, strict=True)):
        start, end = _x(begin, total), _x(begin + time["total"], total)
        label = str(layer["index"])
        middle = round((start + end) / 2, 2)
        shown = middle - len(label) * _DIGIT / 2 >= free and end > start
        free = middle + len(label) * _DIGIT / 2 + 2 if shown else free
        name = f"layer {layer['index']} {shortened(layer['name'])} ({layer['op']}, {layer['kernel']})"
        units = ", ".join(f"{unit} {time[unit]:,}" for unit in (*UNITS, "waiting"))
        bands.append(
            {
                "x": start, "width": round(end - start, 2), "middle": middle, "label": label if shown else "",
                "plain": number % 2 == 1, "title": f"{name}: {time['total']:,} cycles; {units}",
            }
        )  # fmt: skip
        begin += time["total"]
    return bands


def _row(number: int, unit: str, cycles: dict[str, Any]) -> dict[str, Any]:
    total, y = cycles["total"], _TOP + number * _ROW + (_ROW - _BAR) // 2
    name = "waiting" if unit == "core" else unit
    spans = _merged(
        ((interval["begin"], interval["end"]) for interval in cycles["timeline"] if interval["unit"] == name), total
    )
    if unit == "core":
        spans = _between(spans, total)
    path = "".join(f"M{_x(a, total)} {y}H{_x(b, total)}v{_BAR}H{_x(a, total)}z" for a, b in spans)
    return {"name": unit, "y": y, "path": path, "title": f"{unit}: {cycles[unit]:,} of {total:,} cycles"}


def _merged(spans: Iterable[Span], total: int) -> list[Span]:
    """Sort the spans, and merge those that overlap or are too close to be distinguished."""
    finest = _FINEST * total / (_RIGHT - _LEFT)
    merged: list[Span] = []
    for begin, end in sorted((max(begin, 0), min(end, total)) for begin, end in spans):
        if end <= begin:
            continue
        if merged and begin - merged[-1][1] <= finest:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def _between(spans: Iterable[Span], total: int) -> list[Span]:
    """Return the gaps between the spans."""
    gaps, position = [], 0.0
    for begin, end in spans:
        if begin > position:
            gaps.append((position, begin))
        position = end
    return [*gaps, (position, total)] if position < total else gaps


def _ticks(total: int) -> list[dict[str, Any]]:
    """Return ticks at round numbers of cycles, and at the end of the inference."""
    step = next(scale * 10**power for power in range(20) for scale in (1, 2, 5) if total <= scale * 10**power * _TICKS)
    ticks = [cycle for cycle in range(0, total, step) if total - cycle > step / 2]
    return [
        {"x": _x(cycle, total), "label": f"{cycle:,}", "anchor": "end" if cycle == total else "middle"}
        for cycle in (*ticks, total)
    ]
