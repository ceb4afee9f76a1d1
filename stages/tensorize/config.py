"""Options of the tensorize stage."""

from typing import Any, Literal

from pydantic import Field

from stages.backends.targets.memory import Size
from stages.base import StageConfig
from stages.ir.graph.layer_rules import LayerMatch


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
    requantize      unit that computes 8-bit outputs from an accelerator's sums: core or engine; by default the
                    accelerator's first requantizer
    narrow_weights  pack weights that fit 4, 2 or 1 bits in ROM and unpack them into scratch before their layer
    optimize_for    the objective of kernel selection (stages.tensorize.objective, stages.tensorize.rom_tradeoff)
    input_rows      the caller passes the input row by row; `emit: {input: rows}` sets it
    output_rows     the application receives the output row by row; `emit: {output: rows}` sets it
    streaming       run layers by rows where that saves memory (stages.tensorize.rows); `memory.streaming` sets it
    overwrite_input  results of layers by rows may replace rows of the input that no layer needs any more;
                    `memory.overwrite_input` sets it
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
        default=True, description="count kernels for the network's layers on the simulator; `off`: choose by estimates"
    )
    tuning: Any = Field(default=None, description="ignored: kernels are counted", deprecated=True, exclude=True)
    measure: Any = Field(default=None, description="ignored: kernels are counted", deprecated=True, exclude=True)
    streaming: Literal["auto", False] | None = Field(
        default=None,
        description="layers run by rows where that saves RAM; `false`: whole images; `memory.streaming` sets it",
    )
    input_rows: bool = Field(
        default=False, description="the caller passes the input row by row; `emit: {input: rows}` sets it"
    )
    output_rows: bool = Field(
        default=False, description="the application receives the output row by row; `emit: {output: rows}` sets it"
    )
    overwrite_input: bool | None = Field(
        default=None,
        description="results of layers by rows may replace rows of the input that no layer needs any more; "
        "`memory.overwrite_input` sets it",
    )
    simplify: bool = Field(
        default=True, description="remove layers and channels without effect; `off`: compute all of them"
    )

    @property
    def by_rows(self) -> bool:
        """Whether layers may run by rows."""
        return self.streaming is not False or bool(self.ports_by_rows)

    @property
    def ports_by_rows(self) -> tuple[Literal["input", "output"], ...]:
        """The ports whose rows the application passes or receives."""
        return (*(("input",) if self.input_rows else ()), *(("output",) if self.output_rows else ()))
