"""What the ways of `doit calibrate` share: a core's table, where it is, and what is measured into it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.commands.executing import chosen
from pipeline.commands.measurable import tools_of, versions
from pipeline.project import Project
from pipeline.runs.session import Display
from pipeline.terminal.progress import ProgressDisplay
from stages.system.asides import write_whole

if TYPE_CHECKING:
    from stages.calibrate.cases import Case
    from stages.calibrate.cycles import CyclesFile
    from stages.calibrate.table import Table
    from stages.targets.spec import Target

CALIBRATION = "calibrate"


@dataclass(frozen=True)
class Outcome:
    """What there was to measure: `cases` in all, `missing` of them not in the table, entries of `stale` kernels."""

    table: Path
    cases: int
    missing: tuple[str, ...]
    stale: tuple[str, ...]
    entries: int


@contextmanager
def displayed(*, as_json: bool) -> Iterator[ProgressDisplay]:
    """A display while something is measured; standard output is JSON's where that is printed."""
    display = ProgressDisplay(sys.stderr if as_json else None)
    try:
        yield display
    finally:
        display.close()


def table_of(target: Target, project: Project) -> tuple[Path, Table]:
    """The table that counts, and where it is or would be: a project's own begins with what is built in."""
    from stages.calibrate.table import Table
    from stages.tensorize import cost_table

    places = (cost_table(target.core, folder) for folder in project.folders)
    place = next(filter(Path.is_file, places), cost_table(target.core, project.root))
    return place, Table.read(place, target)


def measured(
    table: Table, missing: Sequence[Case], target: Target, project: Project, progress: Callable[..., None]
) -> Path:
    """Measures the cases and writes the table of the project, whose path is returned."""
    from stages.calibrate.measure import measure
    from stages.tensorize import cost_table

    path = cost_table(target.core, project.root)
    begin = chosen().beginning(tools_of(target))
    with kept(table, missing, target, project, path, lambda: table.text(target)):
        for case, instructions in measure(missing, target, progress=progress, begin=begin):
            table.add(case, instructions)
    return path


def sampled(table: Table, missing: Sequence[Case], target: Target, progress: Callable[..., None]) -> list[Case]:
    """Enters what changed kernels took before, where a sample of their cases takes that still; what is missing then."""
    from stages.calibrate.measure import measure
    from stages.calibrate.sampling import Sample

    sample = Sample.of(table, missing)
    begin = chosen().beginning(tools_of(target))
    sample.keep(table, measure(sample.cases, target, progress=progress, begin=begin))
    return table.missing(missing)


@contextmanager
def kept(
    table: Table | CyclesFile,
    missing: Sequence[Case],
    target: Target,
    project: Project,
    path: Path,
    text: Callable[[], str],
) -> Iterator[None]:
    """While the cases are measured into a table: it is written then, with what was measured before a failure."""
    try:
        yield
    finally:
        table.tools = versions(target, project.root) if missing else table.tools
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text())


def shown_by(target: Target, display: Display | None) -> Callable[..., None]:
    """What tells how far it is."""

    def progress(message: str, fraction: float | None = None) -> None:
        if display is not None:
            display.progress(target.name, CALIBRATION, message, fraction)

    return progress
