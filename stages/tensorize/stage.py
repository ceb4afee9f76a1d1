"""Stage tensorize: choose kernels, pack constants, lower layers to TIR that calls kernels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, Tool
from stages.ir.models.sources import ModelSource
from stages.tensorize.config import TensorizeConfig


class TensorizeStage(Stage[TensorizeConfig]):
    """The stage tensorize."""

    kind = "tensorize"
    exclusive = True
    config = TensorizeConfig
    consumes = ("quantize",)
    may_consume: ClassVar[tuple[str, ...]] = ("count",)

    def parameters(self, config: TensorizeConfig) -> dict[str, Any]:
        """Return the options without `count`: its result is an input of the stage."""
        return {name: value for name, value in super().parameters(config).items() if name != "count"}

    def inputs(self, config: TensorizeConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return TVM, the code of the target's kernels and accelerator, and the target's fields."""
        from stages.backends.accelerators.registry import code_patterns_of
        from stages.backends.kernels.places import code_patterns, cost_patterns
        from stages.backends.targets.places import accelerator_code, kernel_code

        tools = (Tool("tvm", package="apache-tvm"), Tool("tvm-ffi", package="apache-tvm-ffi"))
        for_engine = () if target.accelerator is None else (Tool("scipy", package="scipy"),)
        for_cycles = ("name", "timing_model", "flash") if config.optimize_for == "cycles" else ()
        return ActionInputs(
            tools=(*tools, *for_engine),
            sources=(
                "stages/tensorize/*.py",
                "stages/backends/targets/spec.py",
                *code_patterns(target.kernels),
                *code_patterns_of(target),
                *cost_patterns(target.family),
            ),
            code=kernel_code(target) | accelerator_code(target),
            target_fields=(
                *("core", "family", "isa", "word_bits", "vlen", "fpu", "extensions", "kernels"),
                *("float_lanes", "float_registers"),
                *("accelerator", "is_hosted"),
                *for_cycles,
            ),
        )

    def preflight(
        self, config: TensorizeConfig, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Raise StageError for unknown kernels in rules, and for cycles without a timing model."""
        from stages.tensorize.rules import check_names

        check_names(config.rules, target)
        if config.optimize_for == "cycles":
            from stages.tensorize.objective import check_timed

            check_timed(target)

    def run(self, job: Job[TensorizeConfig]) -> None:
        """Write the artifact to the job's folder."""
        from stages.tensorize.build import tensorize

        tensorize(job)


STAGE = TensorizeStage()
