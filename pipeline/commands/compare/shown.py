"""A difference in the terminal, as Markdown, as a page, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from pipeline.commands.compare.difference import Change, Difference, LayerChange
from stages.messages import escape
from stages.messages.templates import environment

_TOTALS = ("", "A", "B", "B - A", "%")
_LAYERS = ("layer", "operator", "A", "B", "B - A", "%", "kernel")


def text(found: Difference, most: int) -> list[str]:
    """Lines for a terminal; `most` layers, those that differ."""
    lines = [f"A  {found.names[0]}", f"B  {found.names[1]}", ""]
    lines += _aligned([_TOTALS, *map(_total, found.totals)])
    rows, rest = _shown(found, most)
    if rows:
        lines += ["", *_aligned([_LAYERS, *map(_layer, rows)])]
    return [escape.line(line) for line in (*lines, "", *found.notes, _left_out(found, rest))]


def markdown(found: Difference, most: int) -> str:
    """A comment for a pull request."""
    rows, rest = _shown(found, most)
    before, after = map(escape.markdown, found.names)
    lines = [f"### {before} → {after}", "", f"A: {before}, B: {after}", ""]
    lines += [escape.markdown_row(row) for row in (_TOTALS, _rules(_TOTALS), *map(_total, found.totals))]
    if rows:
        table = [escape.markdown_row(row) for row in (_LAYERS, _rules(_LAYERS), *map(_layer, rows))]
        lines += ["", "<details><summary>Layers</summary>", "", *table, "", "</details>"]
    for note in (*found.notes, _left_out(found, rest)):
        lines += ["", escape.markdown(note)]
    return "\n".join([*lines, ""])


def page(found: Difference) -> str:
    """One HTML file with all layers."""
    import jinja2

    loader = jinja2.ChoiceLoader(
        [jinja2.PackageLoader("pipeline.commands.compare"), jinja2.PackageLoader("stages.report.html")]
    )
    made = environment(loader, strict=False)
    made.filters |= {"name": escape.name, "text": escape.line}
    most = max((abs(one.effect) for one in found.layers), default=0) or 1
    rows = [{"cells": _layer(one), "share": abs(one.effect) / most, "more": one.effect > 0} for one in found.layers]
    return made.get_template("compare.html.j2").render(
        names=found.names,
        titles=_TOTALS,
        totals=[_total(one) for one in found.totals],
        columns=_LAYERS,
        rows=rows,
        notes=found.notes,
        told="" if found.one_counter else _two_counters(found),
    )


def as_json(found: Difference) -> str:
    """All of it."""
    totals = [{**asdict(one), "by": one.by, "percent": one.percent} for one in found.totals]
    layers = [{**asdict(one), "by": one.by, "percent": one.percent} for one in found.layers]
    return json.dumps(
        {
            "names": found.names,
            "counters": found.counters,
            "counted": found.counted,
            "totals": totals,
            "layers": layers,
            "notes": found.notes,
        },
        indent=1,
    )


def _shown(found: Difference, most: int) -> tuple[list[LayerChange], int]:
    """The layers that differ, the first `most`, and how many more do."""
    differing = [one for one in found.layers if one.effect or one.before is None or one.after is None]
    return differing[:most], max(0, len(differing) - most)


def _left_out(found: Difference, rest: int) -> str:
    if not found.one_counter:
        return _two_counters(found)
    same = sum(not one.effect and one.before is not None and one.after is not None for one in found.layers)
    more = f"{rest} more layers differ; " if rest else ""
    return f"{more}{same} of {len(found.layers)} layers take as many {found.counted} as before"


def _two_counters(found: Difference) -> str:
    before, after = found.counters
    return f"A counts {before}, B {after}: not set against each other, nor are layers"


def _total(one: Change) -> tuple[str, ...]:
    return (one.name, *_figures(one))


def _layer(one: LayerChange) -> tuple[str, ...]:
    before, after = one.kernels
    kernels = before if before == after else f"{before or '-'} -> {after or '-'}"
    shapes = one.shapes
    different = f" {shapes[0]} -> {shapes[1]}" if all(shapes) and shapes[0] != shapes[1] else ""
    name = "/".join(one.name.partition(";")[0].split("/")[-2:])
    return (escape.shortened(name, 40), one.op, *_figures(one), kernels + different)


def _figures(one: Change) -> tuple[str, str, str, str]:
    percent = "" if one.percent is None else f"{one.percent:+.2f}"
    return _number(one.before), _number(one.after), _number(one.by, sign=True), percent


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    plus = "+" if sign else ""
    return f"{value:{plus},}" if isinstance(value, int) else f"{value:{plus},.4g}"


def _rules(titles: Sequence[str]) -> list[str]:
    return ["---:" if title in ("A", "B", "B - A", "%") else "---" for title in titles]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    right = [title in ("A", "B", "B - A", "%") for title in rows[0]]
    return [
        "  ".join(
            cell.rjust(width) if side else cell.ljust(width)
            for cell, width, side in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
