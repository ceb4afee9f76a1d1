"""The timeline of core, engine and DMA over one inference as a picture, readable on light and dark pages.

layers      0 |   1    | 2 |  3  ...        bands, numbers where there is room
core        ##       ###   ##               what is filled works; the core elsewhere waits
engine        ###### ######  ####
dma         ## #  ##      #
            +--------+--------+--------     cycles
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stages.support.messages.escape import shortened
from stages.support.messages.templates import environment

_WIDTH, _LEFT, _RIGHT = 1000, 60, 990
_TOP, _ROW, _BAR = 24, 30, 22
_FINEST = 0.25  # of the picture's width units: what is closer than this is drawn as one
_DIGIT = 8  # width units of a number's digit
_TICKS = 8  # at most
UNITS = ("core", "engine", "dma")

Span = tuple[float, float]


def timeline_svg(report: dict[str, Any]) -> str:
    """The picture of report.json's `cycles`, '' where there is no timeline."""
    cycles = report.get("cycles")
    if not cycles or not cycles["timeline"] or not cycles["total"]:
        return ""
    from jinja2 import FileSystemLoader

    made = environment(FileSystemLoader(Path(__file__).parent / "templates"))
    total = cycles["total"]
    context = {
        "width": _WIDTH, "height": _TOP + len(UNITS) * _ROW + 30,
        "left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _TOP + len(UNITS) * _ROW,
        "title": f"{shortened(report['model']['name'])} on {report['target']}: {total:,} cycles",
        "layers": _layers(report["layers"], cycles["layers"], total),
        "rows": [_row(number, unit, cycles) for number, unit in enumerate(UNITS)],
        "ticks": _ticks(total),
    }  # fmt: skip
    return str(made.get_template("timeline.svg.j2").render(context))


def _x(cycle: float, total: int) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * cycle / total, 2)


def _layers(layers: Iterable[dict[str, Any]], times: Iterable[dict[str, Any]], total: int) -> list[dict[str, Any]]:
    """Bands, every other one plain: layers run one after the other."""
    found: list[dict[str, Any]] = []
    begin, free = 0, 0.0
    for number, (layer, time) in enumerate(zip(layers, times, strict=True)):
        left, right = _x(begin, total), _x(begin + time["total"], total)
        label = str(layer["index"])
        middle = round((left + right) / 2, 2)
        shown = middle - len(label) * _DIGIT / 2 >= free and right > left
        free = middle + len(label) * _DIGIT / 2 + 2 if shown else free
        name = f"layer {layer['index']} {shortened(layer['name'])} ({layer['op']}, {layer['kernel']})"
        units = ", ".join(f"{unit} {time[unit]:,}" for unit in (*UNITS, "waiting"))
        found.append(
            {
                "x": left, "width": round(right - left, 2), "middle": middle, "label": label if shown else "",
                "plain": number % 2 == 1, "title": f"{name}: {time['total']:,} cycles; {units}",
            }
        )  # fmt: skip
        begin += time["total"]
    return found


def _row(number: int, unit: str, cycles: dict[str, Any]) -> dict[str, Any]:
    total, y = cycles["total"], _TOP + number * _ROW + (_ROW - _BAR) // 2
    name = "waiting" if unit == "core" else unit
    spans = _merged(((one["begin"], one["end"]) for one in cycles["timeline"] if one["unit"] == name), total)
    if unit == "core":
        spans = _between(spans, total)
    path = "".join(f"M{_x(a, total)} {y}H{_x(b, total)}v{_BAR}H{_x(a, total)}z" for a, b in spans)
    return {"name": unit, "y": y, "path": path, "title": f"{unit}: {cycles[unit]:,} of {total:,} cycles"}


def _merged(spans: Iterable[Span], total: int) -> list[Span]:
    """In order, those as one that overlap or that no picture tells apart."""
    finest = _FINEST * total / (_RIGHT - _LEFT)
    found: list[Span] = []
    for begin, end in sorted((max(begin, 0), min(end, total)) for begin, end in spans):
        if end <= begin:
            continue
        if found and begin - found[-1][1] <= finest:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _between(spans: Iterable[Span], total: int) -> list[Span]:
    """What is left of the inference."""
    found, at = [], 0.0
    for begin, end in spans:
        if begin > at:
            found.append((at, begin))
        at = end
    return [*found, (at, total)] if at < total else found


def _ticks(total: int) -> list[dict[str, Any]]:
    """At round numbers of cycles, and where the inference ends."""
    step = next(scale * 10**power for power in range(20) for scale in (1, 2, 5) if total <= scale * 10**power * _TICKS)
    ticks = [at for at in range(0, total, step) if total - at > step / 2]
    return [
        {"x": _x(at, total), "label": f"{at:,}", "anchor": "end" if at == total else "middle"} for at in (*ticks, total)
    ]
