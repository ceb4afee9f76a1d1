"""plan.json: what tensorize decided for each layer, and why. Emit and report read it; no tvm needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from stages.lower.offload.program import Attachment, Program, Search, Stretch, Times
from stages.lower.simplify.rewrites import Rewrite

FORMAT = 1


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Alternative(_Model):
    """A kernel, or other parameters of one, that was not taken: what it would cost, or the reason why it cannot.

    `flips` of the layer's tensors, to the other type of 8 bits, are in the cost: it computes the layer with them only.
    """

    kernel: str
    params: dict[str, Any] = Field(default_factory=dict)
    cost: float | None = None
    cost_source: str = ""
    reason: str = ""
    flips: int = 0


class Step(_Model):
    """A function of tir.json and the roles of its buffer parameters in order (see `kernel.Lowering`)."""

    function: str
    roles: tuple[str, ...]


class Distance(_Model):
    """How far an engine's arithmetic is from LiteRT's: of `reachable` sums `differing` differ, by `largest` at most.

    Of a layer with weights the sums that weights, bias and inputs allow; of an ADD or SUB the pairs of inputs.
    """

    reachable: int
    differing: int
    largest: int


class LayerPlan(_Model):
    """A layer's kernel and its functions, called one after the other.

    kernel       the kernel's name; 'tvm' for a float operator, 'alias' for a layer that only renames its input's memory
    cost         instructions (or the plan's `unit`), None when nobody knows them; `cost_source` says whether they are
                 counted, modelled (cycles of an accelerator) or estimated (by the kernel)
    sources      kernel files that are compiled, as folder/file; `headers` declare the functions that they call
    may_overlay  the output may take the memory of an input that dies here
    constants    keys of weights.npz by constant key
    program      of a layer that an accelerator computes, instead of steps
    predicted    cycles, on a target with an accelerator
    distance     of a layer that has the engine's own arithmetic
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


class TensorizePlan(_Model):
    """One entry for each layer of the graph, in order.

    `unused_rules` are numbers, from 1, of the recipe's rules that decided for no layer; `warnings` say what they match.
    `rewrites` are what the graph of the quantize stage has more; None where the recipe has all of it computed.
    `attachment` is there where an accelerator computes a layer, with a predicted `timeline` and `search`,
    which tells how tiles and places were found. `unit` is what costs are in: instructions, or cycles. `counted` is how
    many calls of kernels were counted.
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
    counted: int = 0

    def save(self, folder: Path) -> None:
        (folder / "plan.json").write_text(self.model_dump_json(indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> TensorizePlan:
        """Reads what `save` wrote. Raises ValueError for another format."""
        plan = cls.model_validate_json((folder / "plan.json").read_text())
        if plan.format != FORMAT:
            raise ValueError(f"plan.json has format {plan.format}; this version reads {FORMAT}")
        return plan
