"""What docs/distributed.md says of many workers: made of the figures in docs/distributed.json, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from pathlib import Path

from stages.system.installation import INSTALLATION
from tests.scaling.simulation import LINES, WORKERS, Costs, Outcome, Step, simulate, stops_at

PAGE = INSTALLATION / "docs/distributed.md"
FIGURES = INSTALLATION / "docs/distributed.json"
RECIPES = 2000
# `doit run` in so many places at once.
PLACES = 4
_BEGIN, _END = "<!-- scaling:begin -->\n", "<!-- scaling:end -->\n"
_NAMES = {
    "client": "the machine that gives the work away",
    "scheduler": "Dask's scheduler",
    "server": "the remote store",
}
_LONG = 10.0  # seconds of a stage of a network that is calibrated, tuned or large

_TEXT = """\
| who | takes | how |
|---|--:|---|
| client, the machine you are at | {client} | one at a time: key, request, and what it reads of the artifact |
| Dask's scheduler | {scheduler} | one at a time |
| worker | {worker} and the stage | looking up code and tools, getting inputs, sending the artifact |
| remote store | {server} and the bytes | all share its bandwidth, {bandwidth} in a second |

{recipes} recipes, as {reports} reports of this repository's recipes have them ({hours} hours of stages, {each} seconds
a recipe, nothing shared between them):

{one}

{limit} The client takes {client} for each of {stages} stages, {minutes} minutes however many compute: it keeps
{short} workers busy with the {mean} seconds of these stages, {long} with stages of ten.

`doit run` in {places} places at once, with one scheduler and one store, each with its part of the recipes
(`doit matrix-json` cuts them into jobs):

{several}

{several_limit}
"""


def write_figures(costs: Costs, recipes: Sequence[Sequence[Step]], path: Path = FIGURES) -> None:
    """Keep what was measured: costs beside stages, and of each recipe's stages seconds and bytes."""
    rows = [[[round(number, 3) for number in astuple(step)] for step in recipe] for recipe in recipes]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    path.write_text(f'{{"costs": {json.dumps(_rounded(costs))},\n "recipes": [\n{lines}\n]}}\n')


def read_figures(path: Path = FIGURES) -> tuple[Costs, list[list[Step]]]:
    """As write_figures left them."""
    found = json.loads(path.read_text())
    return Costs(**found["costs"]), [[Step(*step) for step in recipe] for recipe in found["recipes"]]


def with_figures(page: str, figures: str) -> str:
    """The page with these between its marks."""
    before, _, rest = page.partition(_BEGIN)
    return before + _BEGIN + figures + _END + rest.partition(_END)[2]


def figures(costs: Costs, measured: Sequence[Sequence[Step]]) -> str:
    """Markdown: what a stage costs beside itself, and how far more workers help."""
    recipes = [measured[number % len(measured)] for number in range(RECIPES)]
    stages = sum(map(len, recipes))
    seconds = sum(step.seconds for recipe in recipes for step in recipe)
    one = [simulate(recipes, workers, costs) for workers in WORKERS]
    several = [simulate(recipes, workers, replace(costs, client=costs.client / PLACES)) for workers in WORKERS[2:]]
    mean = seconds / stages
    return _TEXT.format(
        client=_ms(costs.client),
        scheduler=_ms(costs.scheduler),
        worker=_ms(costs.worker),
        server=_ms(costs.server),
        bandwidth=f"{costs.bandwidth / 1e6:.0f} MB",
        recipes=f"{RECIPES:,}",
        reports=len(measured),
        hours=f"{seconds / 3600:.1f}",
        each=f"{seconds / len(recipes):.1f}",
        one="\n".join(table(one)),
        limit=_limit(one),
        stages=f"{stages:,}",
        minutes=f"{costs.client * stages / 60:.1f}",
        short=f"{(mean + costs.worker) / costs.client:.0f}",
        mean=f"{mean:.1f}",
        long=f"{(_LONG + costs.worker) / costs.client:.0f}",
        places=PLACES,
        several="\n".join(table(several, first=one[0])),
        several_limit=_limit(several),
    )


def table(outcomes: Sequence[Outcome], first: Outcome | None = None) -> list[str]:
    """Markdown: workers, minutes, how many times faster than `first`, and who was at work."""
    first = first or outcomes[0]
    lines = [
        "| workers | minutes | speed-up | workers busy | client | scheduler | server |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in outcomes:
        shares = " | ".join(f"{100 * one.shares[name]:.0f} %" for name in ("workers", *LINES))
        speed_up = first.seconds / one.seconds * first.workers
        lines.append(f"| {one.workers} | {one.seconds / 60:,.1f} | {speed_up:.1f} | {shares} |")
    return lines


def _limit(outcomes: Sequence[Outcome]) -> str:
    last = stops_at(outcomes)
    if last is None:
        return f"All of them are worth it, up to {outcomes[-1].workers}."
    beyond = outcomes[outcomes.index(last) + 1]
    busiest = max(LINES, key=lambda name: beyond.shares[name])
    return (
        f"It stops scaling between {last.workers} and {beyond.workers} workers: {_NAMES[busiest]} is at work "
        f"{100 * beyond.shares[busiest]:.0f} % of the time then."
    )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms" if seconds < 0.0095 else f"{1e3 * seconds:.0f} ms"


def _rounded(costs: Costs) -> dict[str, float]:
    return {name: float(f"{value:.3g}") for name, value in asdict(costs).items()}
