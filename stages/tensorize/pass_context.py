"""Shared by all passes: target, kernels, costs and the recipe's options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.ir.graph import Graph, Layer, LayerView
from stages.ir.graph.layer_rules import LayerMatch
from stages.ir.tensor_layout import Layout
from stages.lower.offload.attach import machine_of
from stages.lower.offload.kernel import OffloadKernel, offload_kernel
from stages.tensorize.config import TensorizeConfig
from stages.tensorize.costs import Costs, KernelCall
from stages.tensorize.lowering import Lowerings, layer_key
from stages.tensorize.memory import ArenaBound
from stages.tensorize.rom import Rom
from stages.tensorize.select import Choice, choose
from stages.tensorize.signedness import as_uint8

MOST_EXTRA = 0.02
"""Share of additional instructions that rows may cost, unless the arena's limit asks for more rows."""


@dataclass(frozen=True)
class PassContext:
    """The inputs of a pass beside the graph.

    rom          the price of ROM bytes, if the objective has one
    least_arena  the arena limit was derived for `optimize_for: ram`
    weigh_rom    weigh the size of code against instructions (stages.tensorize.rom_tradeoff)
    counting     the choice is of calls to count, not the final one
    """

    target: Target
    config: TensorizeConfig
    kernels: tuple[Kernel, ...]
    costs: Costs
    lowerings: Lowerings
    offload: OffloadKernel | None = None
    rom: Rom | None = None
    least_arena: bool = False
    weigh_rom: bool = True
    counting: bool = False

    _calls: dict[tuple[str, tuple[int, ...]], tuple[LayerView, list[KernelCall]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        target: Target,
        config: TensorizeConfig,
        kernels: Iterable[Kernel],
        costs: Costs | None = None,
        float_module: Any = None,
    ) -> PassContext:
        """Return the context of a target. Its accelerator becomes one of the kernels.

        Without `costs` the kernels' estimates are used.
        """
        machine = machine_of(target, config.requantize)
        offload = None if machine is None else offload_kernel(machine)
        kernels = (*kernels, offload) if offload is not None else tuple(kernels)
        return cls(target, config, kernels, costs or Costs(), Lowerings(target, float_module), offload)

    @property
    def unit(self) -> str:
        """The unit of costs, for messages."""
        return "cycles" if self.config.optimize_for == "cycles" else "instructions"

    @property
    def unlimited(self) -> PassContext:
        """The context without an arena limit."""
        return replace(self, config=self.config.model_copy(update={"arena_limit": None}))

    @property
    def by_rows(self) -> bool:
        """Whether layers may run by rows."""
        return self.config.by_rows and self.offload is None

    @property
    def most_extra(self) -> float:
        """The largest share of additional instructions that rows may cost without an arena limit.

        0 unless rows are requested, if the objective is speed or an operating system provides the memory.
        """
        config = self.config
        is_asked = config.streaming == "auto" or bool(config.ports_by_rows)
        is_fast = config.optimize_for in ("speed", "cycles") or self.target.memory is None
        return 0.0 if is_fast and not is_asked else MOST_EXTRA

    def bound(self, graph: Graph) -> ArenaBound | None:
        """Return the arena bound for choosing the kernels of one graph, None without a limit.

        The bound is of whole tensors, so there is none if layers may run by rows, unless for `optimize_for: ram`.
        """
        limit = self.config.arena_limit
        if limit is None or (self.by_rows and not self.least_arena):
            return None
        return ArenaBound(graph, limit, self.lowerings)

    def choose(self, view: LayerView, bound: ArenaBound | None) -> Choice:
        """Return the layer's kernel.

        Raises StageError if no kernel, or not the one that a rule names, can compute it.
        """
        return choose(view, self.target, self.kernels, self.config.rules, self.costs, bound, self.rom)

    def calls(self, view: LayerView) -> list[KernelCall]:
        """Return the calls that can compute a layer; each layer is looked at once, for all costs."""
        names = [*view.layer.constants.values(), *(tensor.name for tensor in view.inputs if tensor.constant)]
        key = layer_key(view), tuple(id(view.arrays[name]) for name in names)
        if key not in self._calls:
            able = [k for k in self.kernels if k.is_for(view.op) and not k.why_not(view, self.target)]
            params = ((k, p) for k in able for p in k.candidates(k.seen(view), self.target))
            calls = [KernelCall.of(kernel, view, p, self.target) for kernel, p in params]
            self._calls[key] = view, calls  # the view keeps its constants, whose ids are in the key
        return self._calls[key][1]

    def choose_like(self, whole: LayerView, view: LayerView) -> Choice:
        """Return the kernel of part of a layer; the whole layer's rules (name, shape) decide."""
        rule = next((rule for rule in self.config.rules if rule.match.fits(whole)), None)
        rules = () if rule is None else (rule.model_copy(update={"match": LayerMatch()}),)
        return choose(view, self.target, self.kernels, rules, self.costs, None, self.rom)

    def cost(self, view: LayerView) -> float:
        """Return the price of the layer's kernel: instructions, plus the price of its ROM bytes.

        Infinity if no kernel can compute it.
        """
        try:
            return self.choose(view, None).price or 0.0
        except StageError:
            return float("inf")

    def cost_on_engine(self, view: LayerView, layout: str | None = None) -> float:
        """Return the cycles of a layer on the accelerator, infinity if it cannot compute the layer.

        The types may differ from the layer's (stages.tensorize.signedness); images are in `layout`, if given.
        Transforms and flips are not included. A rule for another kernel gives infinity.
        """
        engine = self.offload
        rule = next((rule for rule in self.config.rules if rule.match.fits(view)), None)
        if engine is None or not engine.is_for(view.op) or (rule is not None and rule.kernel != engine.name):
            return float("inf")
        if layout is not None:
            images = [tensor for tensor in (*view.inputs, *view.outputs) if len(tensor.shape) == 4]
            in_layout = {image.name: image.model_copy(update={"layout": Layout(layout)}) for image in images}
            view = replace(view, tensors={**view.tensors, **in_layout})
        able = (variant for variant in (view, *as_uint8(view)) if not engine.why_not(variant, self.target))
        return min((engine.cost(variant, engine.params(), self.target) for variant in able), default=float("inf"))

    def kernels_for(self, layer: Layer) -> list[Kernel]:
        """Return the kernels for the layer's operator that run on the target."""
        return [kernel for kernel in self.kernels if kernel.is_for(layer.op) and not kernel.folder.why_not(self.target)]

    def is_ruled(self, view: LayerView) -> bool:
        """Return whether a rule of the recipe matches the layer."""
        return any(rule.match.fits(view) for rule in self.config.rules)
