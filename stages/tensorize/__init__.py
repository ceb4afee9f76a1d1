"""tensorize: for each layer a kernel, its packed weights, and scheduled TIR whose tiles are calls of that kernel."""

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
    """The first rule that matches a layer decides its kernel; `params` are that kernel's own (none: its cheapest)."""

    match: LayerMatch = LayerMatch()
    kernel: str
    params: dict[str, Any] = Field(default_factory=dict)


class TensorizeConfig(StageConfig):
    """Options of the tensorize stage. Without a rule a layer gets the cheapest kernel that can compute it.

    Or one that needs less ROM: what bytes are worth is the objective's (stages.tensorize.rom_tradeoff).
    `arena_limit` bounds the arena, in bytes: a kernel whose scratch brings it above is not chosen. The recipe's
    `memory.arena_limit` sets it. `requantize` says who makes 8-bit outputs of an accelerator's sums: the core, or the
    engine; without it the accelerator's default. With `narrow_weights` those that fit 4, 2 or 1 bits take no more in
    ROM, and are widened into scratch before their layer; without it so do, for `optimize_for: rom`, those for which
    that saves more than it takes, as long as the arena stays within its limit, or without one does not grow.
    With `count` the stage of that name runs before this one, and counts the kernels that may be the best; without it
    the kernels' own estimates decide. `optimize_for` is what counts beside instructions, or instead of them: cycles of
    the target's timing model (stages.tensorize.objective). `tuning` and `measure` were options of earlier versions.
    """

    rules: tuple[TensorizeRule, ...] = ()
    arena_limit: Size | None = None
    requantize: Literal["core", "engine"] | None = None
    narrow_weights: bool | None = Field(
        default=None,
        description="keep weights of 4 bits and less so in ROM, and widen them into RAM before their layer; by default "
        "with `optimize_for: rom`, where that is worth its instructions and the arena stays within its limit, or "
        "without one does not grow",
    )
    optimize_for: Literal["balanced", "speed", "cycles", "rom", "ram"] = Field(
        default="balanced",
        description="what kernels are chosen for: few instructions, where 10 % fewer are worth 5 % more bytes of ROM; "
        "fewest instructions; fewest cycles by the target's timing model; few bytes of weights and code; a small arena",
    )
    count: bool = Field(
        default=True,
        description="count on the simulator what kernels take for the network's layers; `off`: choose by estimates",
    )
    tuning: Any = Field(default=None, description="ignored: kernels are counted", deprecated=True, exclude=True)
    measure: Any = Field(default=None, description="ignored: kernels are counted", deprecated=True, exclude=True)
    simplify: bool = Field(default=True, description="take out work that changes nothing; `off`: compute all of it")


class TensorizeStage(Stage[TensorizeConfig]):
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
        """Without whether is counted: what that left is consumed."""
        return {name: value for name, value in super().parameters(config).items() if name != "count"}

    def target_code(self, target: Target) -> dict[str, Path]:
        from stages.backends.targets.places import accelerator_code, kernel_code

        return kernel_code(target) | accelerator_code(target)

    def target_sources(self, target: Target) -> tuple[str, ...]:
        from stages.backends.accelerators.registry import code_patterns_of
        from stages.backends.kernels.places import code_patterns

        return (*code_patterns(target.kernels), *code_patterns_of(target))

    def tools(self, config: TensorizeConfig, target: Target) -> tuple[Tool, ...]:
        tvm = (Tool("tvm", package="apache-tvm"), Tool("tvm-ffi", package="apache-tvm-ffi"))
        return tvm if target.accelerator is None else (*tvm, Tool("scipy", package="scipy"))

    def option_fields(self, config: TensorizeConfig) -> tuple[str, ...]:
        return ("name", "timing_model", "flash") if config.optimize_for == "cycles" else ()

    def preflight(
        self, config: TensorizeConfig, model: ModelSource, target: Target, root: Path, made: Mapping[str, Path]
    ) -> None:
        """Refuse cycles on a target without a timing model, and rules for unknown kernels."""
        from stages.tensorize.rules import check_names

        check_names(config.rules, target)
        if config.optimize_for == "cycles":
            from stages.tensorize.objective import check_timed

            check_timed(target)

    def run(self, job: Job[TensorizeConfig]) -> None:
        from stages.tensorize.build import tensorize

        tensorize(job)


STAGE = TensorizeStage()
