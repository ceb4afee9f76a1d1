"""Tables in Markdown, row by row."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pipeline.api import run_recipe

Row = Sequence[str]


def counted(recipe: str | Path | dict[str, Any], options: dict[str, str] | None = None) -> dict[str, Any]:
    """The report of a run; PipelineError where it cannot be run."""
    report: dict[str, Any] | None = run_recipe(recipe, options or {}).report
    assert report is not None
    return report


def rewritten(page: str, begins: str, figures: Callable[[Row], Row]) -> str:
    """The page with other cells in the table whose head line begins so; `figures` has a row's cells, and gives them."""
    before, head, rest = page.partition(f"\n| {begins} |")
    assert head, begins
    table, gap, after = rest.partition("\n\n")
    first, rule, *rows = table.split("\n")
    made = [line(figures(cells(row))) for row in rows]
    return "".join((before, head, "\n".join((first, rule, *made)), gap, after))


def filled(page: str, begins: str, made: Iterable[Row]) -> str:
    """The page with these rows in the table whose head line begins so."""
    before, head, rest = page.partition(f"\n| {begins} |")
    assert head, begins
    table, gap, after = rest.partition("\n\n")
    return "".join((before, head, "\n".join((*table.split("\n")[:2], *map(line, made))), gap, after))


def cells(row: str) -> list[str]:
    """Those of a table's line, without the space around them."""
    return [cell.strip() for cell in row.removeprefix("|").removesuffix("|").split("|")]


def line(row: Row) -> str:
    """The line of a table, `| a | | b |`."""
    return f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in row)}|"


def rows(page: str, begins: str) -> list[list[str]]:
    """The cells of the rows of the table whose head line begins so."""
    found: list[list[str]] = []
    rewritten(page, begins, lambda row: found.append(list(row)) or row)  # type: ignore[func-returns-value]
    return found


def number(text: str) -> float:
    """`1,234.5 M` is 1234.5."""
    found = re.match(r"[-+]?[\d,]*\.?\d+", text)
    assert found, text
    return float(found[0].replace(",", ""))


def replaced(page: str, pattern: str, text: str) -> str:
    """The page with `text` in place of the one thing there that fits the pattern."""
    found = re.findall(pattern, page, re.MULTILINE)
    assert len(found) == 1, (pattern, found)
    return re.sub(pattern, lambda _: text, page, flags=re.MULTILINE)
