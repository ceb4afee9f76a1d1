"""plan.json: the decision for each layer and its reason. Reading it needs no tvm."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from stages.lower.offload.program import Attachment, Program, Search, Stretch, Times
from stages.lower.simplify.rewrites import Rewrite
from stages.lower.streaming.plan import StreamedGroup, Streaming

FORMAT = 1


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Alternative(_Model):
    """A rejected kernel or parameter set: its cost, or the reason why it cannot be used.

    `flips` is the number of tensors that must change to the other 8-bit type for it; the cost includes them.
    """

    kernel: str
    params: dict[str, Any] = Field(default_factory=dict)
    cost: float | None = None
    cost_source: str = ""
    reason: str = ""
    flips: int = 0


class Step(_Model):
    """A function of tir.json, and the roles of its parameters (`kernel.Lowering`)."""

    function: str
    roles: tuple[str, ...]


class Distance(_Model):
    """Distance of an engine's arithmetic from LiteRT's.

    Of `reachable` values `differing` differ, by `largest` at most. Values are the sums that weights, bias and inputs
    allow; for ADD and SUB the pairs of inputs.
    """

    reachable: int
    differing: int
    largest: int


class Packable(_Model):
    """Effect of `narrow_weights: true` on a layer whose weights fit fewer bits.

    bits     of a weight: 4, 2 or 1
    bytes    fewer bytes of constants
    scratch  more bytes of scratch, for unpacked weights
    """

    bits: int
    bytes: int
    scratch: int


class LayerPlan(_Model):
    """A layer's kernel and its functions, called in order.

    kernel       kernel name; 'tvm' for a float operator, 'alias' for a layer that only renames its input's memory
    cost         instructions (or the plan's `unit`), None if unknown
    cost_source  counted, modelled (cycles of an accelerator) or estimated (by the kernel)
    sources      kernel files to compile, as folder/file
    headers      headers that declare the kernel's functions
    may_overlay  the output may overlay an input that dies here
    constants    keys of weights.npz by constant key
    program      of a layer on an accelerator, instead of steps
    predicted    cycles, on a target with an accelerator
    distance     of a layer with the engine's arithmetic
    packable     of a layer that narrow_weights would change
    rows         rows of a call, of a layer that runs by rows
    row_tables   constants of which each call by rows reads the part for its rows: bytes of a row
    rest         functions of its last call, if that has fewer rows
    result       functions after its last call, of a layer that adds up rows
    """

    index: int
    name: str
    op: str
    kernel: str
    params: dict[str, Any] = Field(default_factory=dict)
    why: str
    cost: float | None = None
    cost_source: str = ""
    alternatives: tuple[Alternative, ...] = ()
    steps: tuple[Step, ...] = ()
    sources: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    may_overlay: bool = False
    constants: dict[str, str] = Field(default_factory=dict)
    program: Program | None = None
    predicted: Times | None = None
    distance: Distance | None = None
    packable: Packable | None = None
    rows: int | None = None
    row_tables: dict[str, int] = Field(default_factory=dict)
    rest: tuple[Step, ...] = ()
    result: tuple[Step, ...] = ()


class TensorizePlan(_Model):
    """One entry for each layer of the graph, in order.

    unused_rules  numbers, from 1, of the recipe's rules that decided for no layer; `warnings` explain them
    rewrites      simplifications of quantize's graph; None if the recipe disables them
    attachment    present if an accelerator computes a layer, with a predicted `timeline` and `search`, the solver's
                  report
    unit          unit of costs: instructions or cycles
    objective     optimize_for of the recipe
    requantize    unit that computes an accelerator's outputs: core or engine
    requantizers  the other possible units (option `requantize`)
    counted       number of counted calls
    groups        groups of layers that run by rows
    streaming     bytes saved and instructions added by rows; None without groups, unless the recipe asks for rows
    """

    format: int = FORMAT
    target: str
    layers: tuple[LayerPlan, ...]
    unused_rules: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    rewrites: tuple[Rewrite, ...] | None = ()
    attachment: Attachment | None = None
    timeline: tuple[Stretch, ...] = ()
    search: Search | None = None
    unit: Literal["instructions", "cycles"] = "instructions"
    objective: str = ""
    requantize: str = ""
    requantizers: tuple[str, ...] = ()
    counted: int = 0
    groups: tuple[StreamedGroup, ...] = ()
    streaming: Streaming | None = None

    def save(self, folder: Path) -> None:
        """Write plan.json to `folder`."""
        (folder / "plan.json").write_text(self.model_dump_json(indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> TensorizePlan:
        """Return the plan that `save` wrote. Raises ValueError for another format."""
        plan = cls.model_validate_json((folder / "plan.json").read_text())
        if plan.format != FORMAT:
            raise ValueError(f"plan.json has format {plan.format}; this version reads {FORMAT}")
        return plan
