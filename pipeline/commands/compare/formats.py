"""Formats of a comparison: terminal, Markdown, HTML page, JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from pipeline.commands.compare.difference import Change, Difference, LayerChange
from stages.support.messages import escape
from stages.support.messages.templates import environment

_TOTALS = ("", "A", "B", "B - A", "%")
_LAYERS = ("layer", "operator", "A", "B", "B - A", "%", "kernel")


def text(comparison: Difference, most: int) -> list[str]:
    """Return lines for a terminal, with at most `most` of the layers that differ."""
    lines = [f"A  {comparison.names[0]}", f"B  {comparison.names[1]}", ""]
    lines += _aligned([_TOTALS, *map(_total, comparison.totals)])
    rows, omitted = _shown(comparison, most)
    if rows:
        lines += ["", *_aligned([_LAYERS, *map(_layer, rows)])]
    return [escape.line(line) for line in (*lines, "", *comparison.notes, _summary(comparison, omitted))]


def markdown(comparison: Difference, most: int) -> str:
    """Return Markdown for a pull request comment."""
    rows, omitted = _shown(comparison, most)
    before, after = map(escape.markdown, comparison.names)
    lines = [f"### {before} → {after}", "", f"A: {before}, B: {after}", ""]
    lines += [escape.markdown_row(row) for row in (_TOTALS, _rules(_TOTALS), *map(_total, comparison.totals))]
    if rows:
        table = [escape.markdown_row(row) for row in (_LAYERS, _rules(_LAYERS), *map(_layer, rows))]
        lines += ["", "<details><summary>Layers</summary>", "", *table, "", "</details>"]
    for note in (*comparison.notes, _summary(comparison, omitted)):
        lines += ["", escape.markdown(note)]
    return "\n".join([*lines, ""])


def page(comparison: Difference) -> str:
    """Return an HTML page with all layers."""
    import jinja2

    loader = jinja2.ChoiceLoader(
        [jinja2.PackageLoader("pipeline.commands.compare"), jinja2.PackageLoader("stages.report.html")]
    )
    templates = environment(loader, strict=False)
    templates.filters |= {"name": escape.name, "text": escape.line}
    most = max((abs(change.effect) for change in comparison.layers), default=0) or 1
    rows = [
        {"cells": _layer(change), "share": abs(change.effect) / most, "more": change.effect > 0}
        for change in comparison.layers
    ]
    return templates.get_template("compare.html.j2").render(
        names=comparison.names,
        titles=_TOTALS,
        totals=[_total(change) for change in comparison.totals],
        columns=_LAYERS,
        rows=rows,
        notes=comparison.notes,
        counters_note="" if comparison.one_counter else _two_counters(comparison),
    )


def as_json(comparison: Difference) -> str:
    """Return the JSON form."""
    totals = [{**asdict(change), "by": change.by, "percent": change.percent} for change in comparison.totals]
    layers = [{**asdict(change), "by": change.by, "percent": change.percent} for change in comparison.layers]
    return json.dumps(
        {
            "names": comparison.names,
            "counters": comparison.counters,
            "counted": comparison.counted,
            "totals": totals,
            "layers": layers,
            "notes": comparison.notes,
        },
        indent=1,
    )


def _shown(comparison: Difference, most: int) -> tuple[list[LayerChange], int]:
    """Return the first `most` layers that differ, and the number of omitted ones."""
    differing = [layer for layer in comparison.layers if layer.effect or layer.before is None or layer.after is None]
    return differing[:most], max(0, len(differing) - most)


def _summary(comparison: Difference, omitted: int) -> str:
    if not comparison.one_counter:
        return _two_counters(comparison)
    same = sum(not layer.effect and layer.before is not None and layer.after is not None for layer in comparison.layers)
    more = f"{omitted} more layers differ; " if omitted else ""
    return f"{more}{same} of {len(comparison.layers)} layers have the same {comparison.counted}"


def _two_counters(comparison: Difference) -> str:
    before, after = comparison.counters
    return f"totals and layers are not compared: A counts {before}, B {after}"


def _total(change: Change) -> tuple[str, ...]:
    return (change.name, *_figures(change))


def _layer(change: LayerChange) -> tuple[str, ...]:
    before, after = change.kernels
    kernels = before if before == after else f"{before or '-'} -> {after or '-'}"
    shapes = change.shapes
    different = f" {shapes[0]} -> {shapes[1]}" if all(shapes) and shapes[0] != shapes[1] else ""
    name = "/".join(change.name.partition(";")[0].split("/")[-2:])
    return (escape.shortened(name, 40), change.op, *_figures(change), kernels + different)


def _figures(change: Change) -> tuple[str, str, str, str]:
    percent = "" if change.percent is None else f"{change.percent:+.2f}"
    return _number(change.before), _number(change.after), _number(change.by, sign=True), percent


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
