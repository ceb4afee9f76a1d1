"""Stage count: count kernels for a network's layers on the simulator, for tensorize.

Artifact: counts.json (stages.tensorize.counts), empty for targets without a counter.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import Job, Tool
from stages.compile import STAGE as COMPILE
from stages.compile.config import CompileConfig
from stages.simulate import STAGE as SIMULATE
from stages.simulate import SimulateConfig
from stages.tensorize import TensorizeConfig, TensorizeStage

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target


class CountStage(TensorizeStage):
    """The stage count: tensorize's inputs, plus those of compile and simulate."""

    kind = "count"
    options_of = "tensorize"
    may_consume = ()
    sources = (
        *TensorizeStage.sources,
        *(
            "stages/count/__init__.py",
            "stages/count/run.py",
            "stages/emit/templates/*.j2",
            "stages/backends/targets/memory.py",
        ),
    )
    target_fields = (*TensorizeStage.target_fields, "abi", "compiler", "simulator", "counter", "alone")

    def wanted(self, options: Mapping[str, Any]) -> bool:
        """Return whether the recipe's options include counting."""
        return options.get("count", True) is not False

    def target_code(self, target: Target) -> dict[str, Path]:
        """Return tensorize's kernel code, and code that simulates the core."""
        if target.counter == "none":
            return super().target_code(target)
        return super().target_code(target) | SIMULATE.target_code(target.by_itself)

    def target_sources(self, target: Target) -> tuple[str, ...]:
        """Return tensorize's sources, and those that compile and simulate the core."""
        if target.counter == "none":
            return super().target_sources(target)
        core = target.by_itself  # kernels are counted on the core alone
        others = (*COMPILE.target_sources(core), *SIMULATE.target_sources(core))
        return tuple(dict.fromkeys((*super().target_sources(target), *others)))

    def tools(self, config: TensorizeConfig, target: Target) -> tuple[Tool, ...]:
        """Return the tools of tensorize, emit, compile and simulate."""
        if target.counter == "none":
            return super().tools(config, target)
        timed = SimulateConfig(cycles=config.optimize_for == "cycles")
        others = (*COMPILE.tools(CompileConfig(), target), *SIMULATE.tools(timed, target))
        return (*super().tools(config, target), Tool("jinja2", package="jinja2"), *others)

    def option_fields(self, config: TensorizeConfig) -> tuple[str, ...]:
        """Return tensorize's target fields, and those of the timing model for cycles."""
        timed = ("memory", "simulated", "board") if config.optimize_for == "cycles" else ()
        return (*super().option_fields(config), *timed)

    def run(self, job: Job[TensorizeConfig]) -> None:
        """Write counts.json."""
        from stages.count.run import run

        run(job)


STAGE = CountStage()
