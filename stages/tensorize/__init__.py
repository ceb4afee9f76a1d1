"""tensorize: for each layer a kernel, its packed weights, and scheduled TIR whose tiles are calls of that kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from stages.base import Job, Stage, StageConfig, Tool
from stages.models.spec import ModelSource
from stages.options.layer_rules import LayerMatch
from stages.system.pathname import Pathname, located
from stages.targets.memory import Size
from stages.targets.spec import Target


def cost_table(core: str, root: Path) -> Path:
    """Where the measured costs of a core are, if it has any (stages.tensorize.costs), below a project or Firmline."""
    kernels = root / "stages" / "kernels"
    return (kernels if kernels.is_dir() else root) / "costs" / f"{core}.json"


def cycle_table(name: str, root: Path) -> Path:
    """Where the measured cycles of a core or board are, if it has any (stages.tensorize.cycles)."""
    return cost_table("any", root).parent / "cycles" / f"{name}.json"


def cycle_files(target: Target, folders: Iterable[Path]) -> dict[str, Path]:
    """The tables of cycles that may be the target's, of which there are in these folders, the first of a name."""
    from stages.tensorize.cycles import names_of

    found: dict[str, Path] = {}
    for folder in folders:
        paths = {name: cycle_table(name.partition("/")[2], folder) for name in names_of(target)}
        found = {name: path for name, path in paths.items() if path.is_file()} | found
    return found


class TensorizeRule(StageConfig):
    """The first rule that matches a layer decides its kernel; `params` are that kernel's own (none: its cheapest)."""

    match: LayerMatch = LayerMatch()
    kernel: str
    params: dict[str, Any] = Field(default_factory=dict)


class TensorizeConfig(StageConfig):
    """Options of the tensorize stage. Without a rule a layer gets the cheapest kernel that can compute it.

    Or one hardly dearer, whose code other layers bring (stages.tensorize.less_code).
    `arena_limit` bounds the arena, in bytes: a kernel whose scratch brings it above is not chosen. The recipe's
    `memory.arena_limit` sets it. `requantize` says who makes 8-bit outputs of an accelerator's sums: the core, or the
    engine; without it the accelerator's default. With `narrow_weights` those that fit 4, 2 or 1 bits take no more in
    ROM, and are widened into scratch before their layer; without it so do, for `optimize_for: rom`, those for which
    that saves more than it takes, as long as the arena stays within its limit, or without one does not grow.
    `tuning` has measurements of the network's own layers, which count before all others; with `measure` the stage of
    that name runs before this one, and measures the kernels between which costs leave it open which is best.
    `optimize_for` is what counts beside instructions (stages.tensorize.objective), or cycles of the target's timing
    model instead of them (stages.tensorize.cycles).
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
    optimize_for: Literal["speed", "cycles", "rom", "ram"] = Field(
        default="speed",
        description="what kernels are chosen for: fewest instructions; fewest cycles by the target's timing model; "
        "few bytes of weights and code; a small arena",
    )
    tuning: Pathname | Literal[False] | None = Field(
        default=None,
        description="a file of `doit tune`, by default NAME.tuning.json beside the recipe if there is one; `off`: none",
    )
    measure: Literal["worth", "close", False] = Field(
        default=False,
        description="measure on the simulator what costs leave open, before kernels are chosen: `worth`, where "
        "two percent of the network may be saved; `close`, all of it; `off`: choose by costs",
    )
    simplify: bool = Field(default=True, description="take out work that changes nothing; `off`: compute all of it")


class TensorizeStage(Stage[TensorizeConfig]):
    kind = "tensorize"
    exclusive = True
    config = TensorizeConfig
    consumes = ("quantize",)
    may_consume: ClassVar[tuple[str, ...]] = ("measure",)
    sources: ClassVar[tuple[str, ...]] = ("stages/tensorize/*.py", "stages/targets/spec.py")
    target_fields: ClassVar[tuple[str, ...]] = (
        "core",
        "family",
        "isa",
        "word_bits",
        "fpu",
        "extensions",
        "kernels",
        "accelerator",
    )

    def parameters(self, config: TensorizeConfig) -> dict[str, Any]:
        """Without the name of the tuning, whose content counts, and whether was measured: what it left is consumed."""
        own = super().parameters(config)
        return {name: value for name, value in own.items() if name not in ("tuning", "measure")}

    def files(self, config: TensorizeConfig, model: ModelSource, root: Path) -> dict[str, Path]:
        return {"tuning": located(config.tuning, root)} if config.tuning else {}

    def target_code(self, target: Target) -> dict[str, Path]:
        from stages.targets.places import accelerator_code, kernel_code

        return kernel_code(target) | accelerator_code(target)

    def target_sources(self, target: Target) -> tuple[str, ...]:
        from stages.accelerators.registry import code_patterns_of
        from stages.kernels.places import code_patterns

        return (*code_patterns(target.kernels), *code_patterns_of(target))

    def tools(self, config: TensorizeConfig, target: Target) -> tuple[Tool, ...]:
        tvm = (Tool("tvm", package="apache-tvm"), Tool("tvm-ffi", package="apache-tvm-ffi"))
        return tvm if target.accelerator is None else (*tvm, Tool("scipy", package="scipy"))

    def with_files_beside(self, config: TensorizeConfig, recipe: Path) -> TensorizeConfig:
        from stages.tensorize.beside import tuning_beside

        tuning = tuning_beside(recipe)
        if config.tuning is not None or not tuning.is_file():
            return config
        return config.model_copy(update={"tuning": str(tuning)})

    def target_files(self, target: Target, root: Path) -> dict[str, Path]:
        path = cost_table(target.core, root)
        return {"costs": path} if path.is_file() else {}

    def option_fields(self, config: TensorizeConfig) -> tuple[str, ...]:
        return ("name", "timing_model", "flash") if config.optimize_for == "cycles" else ()

    def option_files(self, config: TensorizeConfig, target: Target, root: Path) -> dict[str, Path]:
        return cycle_files(target, [root]) if config.optimize_for == "cycles" else {}

    def foresee(
        self, config: TensorizeConfig, model: ModelSource, target: Target, root: Path, made: Mapping[str, Path]
    ) -> None:
        """Cycles wanted on a target without a timing model; rules for kernels that there are not; a damaged tuning."""
        from stages.tensorize.rules import check_names

        check_names(config.rules, target)
        if config.optimize_for == "cycles":
            from stages.tensorize.cycles import check_timed

            check_timed(target)
        for tuning in self.files(config, model, root).values():
            from stages.tensorize.tuning import read_targets

            read_targets(tuning)

    def run(self, job: Job[TensorizeConfig]) -> None:
        from stages.tensorize.build import tensorize

        tensorize(job)


STAGE = TensorizeStage()
