"""Runs the stage: the graph of quantize in; measured.json out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from stages.base import no_progress
from stages.calibrate.cases import room_of
from stages.calibrate.measure import NotRun, batches, measure
from stages.calibrate.settle import settle
from stages.compile.firmware import DoesNotFit
from stages.graph import Graph
from stages.measure.measurable import why_not_measured
from stages.tensorize.build import setting_of
from stages.tensorize.settled import Figures, save

if TYPE_CHECKING:
    from stages.base import Job
    from stages.calibrate.cases import Case
    from stages.targets.spec import Target
    from stages.tensorize import TensorizeConfig


def run(job: Job[TensorizeConfig]) -> None:
    """Writes the stage's artifact into the job's folder."""
    reason = why_not_measured(job.target)
    figures = {} if reason else _figures(job)
    calls = sum(map(len, figures.values()))
    said = f"nothing is measured: {reason}" if reason else "costs leave nothing open"
    job.log(f"measured {calls} kernels of {len(figures)} layers" if calls else said)
    save(figures, job.out)


def _figures(job: Job[TensorizeConfig]) -> Figures:
    def measured(cases: Sequence[Case]) -> Iterator[tuple[Case, int]]:
        in_cycles = job.config.optimize_for == "cycles"
        return what_runs(cases, job.target, in_cycles=in_cycles, log=job.log, progress=job.progress)

    job.progress("looking for choices that costs leave open")
    setting, _ = setting_of(job)
    return settle(Graph.load(job.inputs["quantize"]), setting, measured)


def what_runs(
    cases: Sequence[Case],
    target: Target,
    *,
    in_cycles: bool = False,
    log: Callable[[str], None],
    progress: Callable[..., None] = no_progress,
) -> Iterator[tuple[Case, int]]:
    """As `measure`, without the cases that do not fit the target's memory or come to no end, which are logged.

    A firmware of several is halved until those are found. Raises StageError for an output that is not the reference's.
    """
    rest = list(cases)
    while rest:
        done = 0
        try:
            for one in measure(rest, target, in_cycles=in_cycles, progress=progress):
                yield one
                done += 1
            return
        except DoesNotFit:
            reason = "it does not fit the target"
        except NotRun as error:
            reason = error.message.splitlines()[0]
        rest = rest[done:]
        group = next(batches(rest, room_of(target)))
        if len(group) == 1:
            log(f"not measured, {reason}: {group[0].variant}: {group[0].signature}")
        else:
            half = len(group) // 2
            for part in (group[:half], group[half:]):
                yield from what_runs(part, target, in_cycles=in_cycles, log=log, progress=progress)
        rest = rest[len(group) :]
