"""`doit calibrate target=NAME drawn=200` and `close=40`: drawn layers, to judge choices by and to learn from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.commands.calibrating import CALIBRATION, Outcome, displayed, measured, shown_by, table_of
from pipeline.commands.drawing import Draw
from pipeline.commands.executing import chosen
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.measurable import measurable, tools_of
from pipeline.errors import PipelineError
from pipeline.project import Project, here, project_of
from pipeline.runs.session import Display
from stages.base import StageError
from stages.messages import escape

if TYPE_CHECKING:
    from stages.calibrate.judge import Judged

_DRAWN_FOR_ONE = 30  # layers of which one is close


def close(
    target_name: str,
    count: int,
    seed: int,
    *,
    root: Path | Project | None = None,
    display: Display | None = None,
) -> tuple[Outcome, int]:
    """Adds `count` layers of many drawn ones to a target's table, those whose best kernel is least certain.

    And how many of them got a kernel over 5 % behind the best until now. Raises PipelineError.
    """
    from stages.calibrate.cases import cases
    from stages.calibrate.close import close as closest
    from stages.calibrate.close import graphs_of, wrong_of
    from stages.calibrate.drawn import drawn
    from stages.tensorize.costs import CostTable

    project = here() if root is None else project_of(root)
    target = measurable(target_name, project)
    try:
        place, table = table_of(target, project)
        if not place.is_file():
            raise PipelineError(f"{target.name} has no table yet: doit calibrate target={target.name}")
        costs, progress = CostTable.read(place), shown_by(target, display)
        found = closest(drawn(seed, _DRAWN_FOR_ONE * count), target, costs, count, progress=progress)
        options = [spec.model_dump(mode="json", exclude_unset=True) for spec in found]
        table.close += [one for one in options if one not in table.close]
        wanted = cases(graphs_of(options), target)
        path = measured(table, table.missing(wanted), target, project, progress)
        return Outcome(path, len(wanted), (), table.stale, table.entries()), wrong_of(wanted, table, target, costs)
    except StageError as error:
        raise PipelineError(f"{CALIBRATION}: {error}") from error


def judge(
    target_name: str,
    count: int,
    seed: int,
    *,
    root: Path | Project | None = None,
    display: Display | None = None,
) -> list[Judged]:
    """Draws `count` layers and measures how far what a target's costs choose is from the best; the worst first.

    Raises PipelineError.
    """
    from stages.calibrate.drawn import drawn
    from stages.calibrate.judge import judge as judged
    from stages.tensorize.costs import CostTable

    project = here() if root is None else project_of(root)
    target = measurable(target_name, project)
    progress = shown_by(target, display)
    try:
        place, _ = table_of(target, project)
        costs = CostTable.read(place) if place.is_file() else None
        begin = chosen().beginning(tools_of(target))
        return judged([*drawn(seed, count)], target, costs, progress=progress, begin=begin)
    except StageError as error:
        raise PipelineError(f"{CALIBRATION}: {error}") from error


def of_drawn(target: str, given: Mapping[str, str], options: Mapping[str, Any]) -> int:
    """What is done with drawn layers: `drawn=` judges, `close=` measures."""
    way = next((name for name in ("drawn", "close") if name in given), "")
    others = [f"{name}=" for name in given if name not in (way, "seed")]
    others += [f"--{name}" for name in ("all", "sample", "check", "cycles") if options[name]]
    if others or not way:
        raise PipelineError(
            f"{others[0]} does not go with {way}=" if way else "seed= goes with drawn= or close=, as drawn=200"
        )
    work = _judge if way == "drawn" else _add_close
    return work(target, Draw.of(given, way), as_json=options["json"])


def _add_close(target: str, draw: Draw, *, as_json: bool) -> int:
    with displayed(as_json=as_json) as display:
        outcome, wrong = close(target, draw.count, draw.seed, display=display)
    table = here().shown(outcome.table)
    if as_json:
        found = {"table": table, "cases": outcome.cases, "entries": outcome.entries, "behind": wrong}
        print(json.dumps({**found, "close": draw.count, "seed": draw.seed}, indent=1))
        return 0
    print(
        f"{table}: {outcome.cases} measurements of close layers, {outcome.entries} in all; "
        f"{wrong} layers were over 5 % behind the best; {draw}"
    )
    return 0


def _judge(target: str, draw: Draw, *, as_json: bool) -> int:
    with displayed(as_json=as_json) as display:
        found = judge(target, draw.count, draw.seed, display=display)
    from stages.calibrate.judge import TOLERANCE

    behind = [one for one in found if one.behind > TOLERANCE]
    if as_json:
        records = [{**asdict(one), "behind": one.behind} for one in behind]
        print(json.dumps({"layers": len(found), "behind": records, "drawn": draw.count, "seed": draw.seed}, indent=1))
        return PENDING if behind else 0
    for one in behind:
        _tell(one.layer, one.behind, one.chosen, one.best, one.changes)
    by_costs = [one for one in found if one.behind_by_costs > TOLERANCE]
    for one in sorted(by_costs, key=lambda one: -one.behind_by_costs):
        _tell(one.layer, one.behind_by_costs, one.by_costs, one.best, one.changes_by_costs, " by costs alone")
    limit = f"{100 * TOLERANCE:.0f} %"
    calls, layers = sum(one.measured for one in found), sum(one.measured > 0 for one in found)
    print(f"{len(by_costs)} of {len(found)} layers over {limit} behind the best by costs alone")
    print(
        f"{len(behind)} of {len(found)} layers over {limit} behind the best with `measure: close`, for which {calls} "
        f"kernels of {layers} layers are measured; {draw}"
    )
    return PENDING if behind else 0


def _tell(layer: str, behind: float, taken: int, best: int, changes: tuple[str, ...], how: str = "") -> None:
    print(f"{100 * behind:6.1f} % behind{how}: {escape.line(layer)}: {taken:,} instructions, {best:,} best")
    for change in changes:
        print(f"          {escape.line(change)}")
