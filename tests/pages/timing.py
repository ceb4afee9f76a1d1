"""Estimates of docs/explanation/timing.md: networks chosen by instructions and by cycles; published cycles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stages.support.system.installation import INSTALLATION as ROOT
from tests.pages.tables import Row, counted, number, replaced, rewritten

PAGE = ROOT / "docs/explanation/timing.md"
CHOSEN, PUBLISHED = "zoo's network, `target=nucleo-l4r5zi`", "network | published, Mcycles"
BOARD, CORE = "nucleo-l4r5zi", "cortex-m4"
Report = Mapping[str, Any]


def run(recipe: str, target: str, *, by_cycles: bool = False) -> Report:
    options = {"set": "stages.tensorize.optimize_for=cycles"} if by_cycles else {}
    return counted(recipe, {"target": target, **options})


def both(report: Report) -> tuple[int, int]:
    """Instructions, and estimated cycles."""
    return report["instructions"]["total"], report["estimated_cycles"]["total"]


def chosen(row: Row) -> Row:
    """A network by instructions and by cycles, and what the latter wins."""
    usual, quick = (both(run(row[0].strip("`"), BOARD, by_cycles=by)) for by in (False, True))
    won = 100 * (quick[1] / usual[1] - 1)
    return row[0], *(f"{one:,}" for one in (*usual, *quick)), f"{won:.1f} %" if quick != usual else "0"


def each(report: Report) -> float:
    """Estimated cycles of an instruction."""
    instructions, cycles = both(report)
    return cycles / instructions


def published(row: Row) -> Row:
    """Cycles of an instruction: published, and estimated with wait states and without."""
    quotient = number(row[1]) / number(row[2])
    ours, without = (each(run(f"{row[0]}_cortex_m4", target)) for target in (BOARD, CORE))
    error = 100 * (ours / quotient - 1)
    return *row[:3], f"{quotient:.2f}", f"{ours:.3f}", f"{error:+.0f} %", f"{without:.3f}"


def printed(page: str) -> str:
    """The page with the two lines that a run prints."""
    report = run("kws_cortex_m4", BOARD)
    instructions, cycles = both(report)
    estimate = report["estimated_cycles"]
    page = replaced(page, r"^instructions  [\d,]+, ", f"instructions  {instructions:,}, ")
    bounds = f"{estimate['milliseconds']:.3g} ms at 120 MHz; {estimate['least']:,} to {estimate['most']:,}"
    line = f"est. cycles   {cycles:,} (timing model cortex-m4), {bounds}"
    return replaced(page, r"^est\. cycles   [\d,]+ \(timing model .* to [\d,]+(?= depending)", line)


def renewed(page: str) -> str:
    """The page with the figures of today."""
    page = rewritten(printed(page), CHOSEN, chosen)
    estimates = re.findall(r"^\| `(?:kws|ic|ad)_cortex_m4` \| [\d,]+ \| ([\d,]+) \|", page, re.MULTILINE)
    kws, ic, ad = (f"{number(one) / 1e6:.2f}" for one in estimates)
    page = replaced(page, r"the estimates are [\d.]+, [\d.]+ and [\d.]+\d", f"the estimates are {kws}, {ic} and {ad}")
    return rewritten(page, PUBLISHED, published)
