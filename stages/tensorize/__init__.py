"""Stage tensorize: choose kernels, pack constants, lower layers to TIR that calls kernels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from stages.backends.targets.memory import Size
from stages.backends.targets.spec import Target
from stages.base import Job, Stage, StageConfig, Tool
from stages.ir.graph.layer_rules import LayerMatch
from stages.ir.models.spec import ModelSource


class TensorizeRule(StageConfig):
    """A recipe's rule: the kernel of the layers that it matches. The first match decides.

    `params` are the kernel's parameters. Without them the cheapest are taken.
    """

    match: LayerMatch = LayerMatch()
    kernel: str
    params: dict[str, Any] = Field(default_factory=dict)


class TensorizeConfig(StageConfig):
    """Options of the stage tensorize. Without a rule a layer gets its cheapest kernel.

    rules           kernels for layers, the first match decides
    arena_limit     bytes: kernels whose scratch exceeds it are not chosen; `memory.arena_limit` sets it
    requantize      what computes 8-bit outputs from an accelerator's sums, core or engine; by default the
                    accelerator's
    narrow_weights  pack weights that fit 4, 2 or 1 bits in ROM and unpack them into scratch before their layer
    optimize_for    the objective of kernel selection (stages.tensorize.objective, stages.tensorize.rom_tradeoff)
    count           run the stage count first, which counts promising kernels; `off`: use the kernels' estimates

    Without `narrow_weights`, `optimize_for: rom` packs weights where that saves more than it costs, if the arena stays
    within its limit (without a limit: if it does not grow). `tuning` and `measure` are options of earlier versions.
    """

    rules: tuple[TensorizeRule, ...] = ()
    arena_limit: Size | None = None
    requantize: Literal["core", "engine"] | None = None
    narrow_weights: bool | None = Field(
        default=None,
        description="pack weights of 4 bits and less in ROM, and unpack them into RAM before their layer; by default "
        "with `optimize_for: rom`, where that is worth its instructions and the arena stays within its limit (without "
        "a limit: does not grow)",
    )
    optimize_for: Literal["balanced", "speed", "cycles", "rom", "ram"] = Field(
        default="balanced",
        description="objective of kernel selection: few instructions, with 10 % fewer worth 5 % more bytes of ROM; "
        "fewest instructions; fewest cycles by the target's timing model; few bytes of weights and code; a small arena",
    )
    count: bool = Field(
        default=True,
        description="count kernels for the network's layers on the simulator; `off`: choose by estimates",
    )
    tuning: Any = Field(default=None, description="ignored: kernels are counted", deprecated=True, exclude=True)
    measure: Any = Field(default=None, description="ignored: kernels are counted", deprecated=True, exclude=True)
    simplify: bool = Field(
        default=True, description="remove layers and channels without effect; `off`: compute all of them"
    )


class TensorizeStage(Stage[TensorizeConfig]):
    """The stage tensorize."""

    kind = "tensorize"
    exclusive = True
    config = TensorizeConfig
    consumes = ("quantize",)
    may_consume: ClassVar[tuple[str, ...]] = ("count",)
    sources: ClassVar[tuple[str, ...]] = ("stages/tensorize/*.py", "stages/backends/targets/spec.py")
    target_fields: ClassVar[tuple[str, ...]] = (
        "core",
        "family",
        "isa",
        "word_bits",
        "fpu",
        "extensions",
        "kernels",
        "accelerator",
        "is_hosted",
    )

    def parameters(self, config: TensorizeConfig) -> dict[str, Any]:
        """Return the options without `count`: its result is an input of the stage."""
        return {name: value for name, value in super().parameters(config).items() if name != "count"}

    def target_code(self, target: Target) -> dict[str, Path]:
        """Return the code of the target's kernels and accelerator."""
        from stages.backends.targets.places import accelerator_code, kernel_code

        return kernel_code(target) | accelerator_code(target)

    def target_sources(self, target: Target) -> tuple[str, ...]:
        """Return patterns of the source files of the target's kernels, their costs, and its accelerator."""
        from stages.backends.accelerators.registry import code_patterns_of
        from stages.backends.kernels.places import code_patterns

        costs = f"stages/backends/{target.family}/generic_costs.py"
        return (*code_patterns(target.kernels), *code_patterns_of(target), costs)

    def tools(self, config: TensorizeConfig, target: Target) -> tuple[Tool, ...]:
        """Return TVM, and scipy for an accelerator."""
        tvm = (Tool("tvm", package="apache-tvm"), Tool("tvm-ffi", package="apache-tvm-ffi"))
        return tvm if target.accelerator is None else (*tvm, Tool("scipy", package="scipy"))

    def option_fields(self, config: TensorizeConfig) -> tuple[str, ...]:
        """Return the target fields of the timing model, if the objective is cycles."""
        return ("name", "timing_model", "flash") if config.optimize_for == "cycles" else ()

    def preflight(
        self, config: TensorizeConfig, model: ModelSource, target: Target, root: Path, made: Mapping[str, Path]
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
