"""measure: what kernels take for a network's layers, where costs leave it open which is best; tensorize reads it.

It runs before tensorize where a recipe says `tensorize: {measure: close}`, or `worth`. Artifact: measured.json
(stages.tensorize.settled), empty for targets on which nothing can be measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import Job, Tool
from stages.compile import STAGE as COMPILE
from stages.compile.config import CompileConfig
from stages.measure.measurable import why_not_measured
from stages.simulate import STAGE as SIMULATE
from stages.simulate import SimulateConfig
from stages.tensorize import TensorizeConfig, TensorizeStage

if TYPE_CHECKING:
    from stages.targets.spec import Target


class MeasureStage(TensorizeStage):
    """Reads what tensorize reads, and what a firmware is made, compiled and simulated with."""

    kind = "measure"
    options_of = "tensorize"
    may_consume = ()
    sources = (*TensorizeStage.sources, "stages/measure/*.py", "stages/emit/templates/*.j2", "stages/targets/memory.py")
    target_fields = tuple(
        dict.fromkeys((*TensorizeStage.target_fields, "rooms", *COMPILE.target_fields, *SIMULATE.target_fields))
    )

    def wanted(self, options: Mapping[str, Any]) -> bool:
        return options.get("measure") in ("worth", "close")

    def parameters(self, config: TensorizeConfig) -> dict[str, Any]:
        """With how much is measured."""
        return {**super().parameters(config), "measure": config.measure}

    def target_code(self, target: Target) -> dict[str, Path]:
        return super().target_code(target) | SIMULATE.target_code(target)

    def target_sources(self, target: Target) -> tuple[str, ...]:
        theirs = (*COMPILE.target_sources(target), *SIMULATE.target_sources(target))
        return tuple(dict.fromkeys((*super().target_sources(target), *theirs)))

    def tools(self, config: TensorizeConfig, target: Target) -> tuple[Tool, ...]:
        if why_not_measured(target):
            return super().tools(config, target)
        timed = SimulateConfig(cycles=config.optimize_for == "cycles")
        theirs = (*COMPILE.tools(CompileConfig(), target), *SIMULATE.tools(timed, target))
        return (*super().tools(config, target), Tool("jinja2", package="jinja2"), *theirs)

    def run(self, job: Job[TensorizeConfig]) -> None:
        from stages.measure.run import run

        run(job)


STAGE = MeasureStage()
