"""Stage count: count kernels for a network's layers on the simulator, for tensorize.

Artifact: counts.json (stages.tensorize.counts), empty for targets without a counter.
"""

from collections.abc import Mapping
from typing import Any

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Tool
from stages.compile.config import CompileConfig
from stages.compile.stage import STAGE as COMPILE
from stages.ir.models.sources import ModelSource
from stages.simulate.config import SimulateConfig
from stages.simulate.stage import STAGE as SIMULATE
from stages.tensorize.config import TensorizeConfig
from stages.tensorize.stage import TensorizeStage


class CountStage(TensorizeStage):
    """The stage count: tensorize's inputs, plus those of compile and simulate."""

    kind = "count"
    options_of = "tensorize"
    may_consume = ()

    def wanted(self, options: Mapping[str, Any]) -> bool:
        """Return whether the recipe's options include counting."""
        return options.get("count", True) is not False

    def inputs(self, config: TensorizeConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return the inputs of tensorize; with a counter also those of compile and simulate."""
        for_cycles = ("memory", "simulated", "board") if config.optimize_for == "cycles" else ()
        inputs = super().inputs(config, model, target) | ActionInputs(
            sources=(
                "stages/count/stage.py",
                "stages/count/run.py",
                "stages/emit/templates/*.j2",
                "stages/backends/targets/memory.py",
            ),
            target_fields=("abi", "compiler", "simulator", "counter", "alone", *for_cycles),
        )
        if target.counter == "none":
            return inputs
        core = target.by_itself  # kernels are counted on the core alone
        compiling = COMPILE.inputs(CompileConfig(), model, core)
        simulating = SIMULATE.inputs(SimulateConfig(cycles=config.optimize_for == "cycles"), model, core)
        return inputs | ActionInputs(
            tools=(Tool("jinja2", package="jinja2"), *compiling.tools, *simulating.tools),
            sources=(*compiling.sources, *simulating.sources),
            code=simulating.code,
        )

    def run(self, job: Job[TensorizeConfig]) -> None:
        """Write counts.json."""
        from stages.count.run import run

        run(job)


STAGE = CountStage()
