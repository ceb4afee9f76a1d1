"""What all passes are told: the target, its kernels and their costs, the recipe's options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stages.base import StageError
from stages.ir.tensor_layout import Layout
from stages.lower.offload.attach import machine_of
from stages.lower.offload.kernel import OffloadKernel, offload_kernel
from stages.tensorize.costs import Costs
from stages.tensorize.lowering import Lowerings
from stages.tensorize.memory import ArenaBound
from stages.tensorize.select import Choice, choose
from stages.tensorize.signedness import as_uint8

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Kernel
    from stages.backends.targets.spec import Target
    from stages.ir.graph import Graph, Layer, LayerView
    from stages.tensorize import TensorizeConfig
    from stages.tensorize.rom import Rom


@dataclass(frozen=True)
class PassContext:
    """Passes read it; what they find goes from one to the next.

    `rom` is there where a recipe wants little of it; `least_arena` says that the limit was found for `ram`. Without
    `weigh_rom` layers get the kernels that cost least, whatever code these bring (stages.tensorize.rom_tradeoff).
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

    @classmethod
    def of(
        cls,
        target: Target,
        config: TensorizeConfig,
        kernels: Iterable[Kernel],
        costs: Costs | None = None,
        float_module: Any = None,
    ) -> PassContext:
        """Without `costs` the kernels' own estimates decide. The target's accelerator is one of the kernels."""
        machine = machine_of(target, config.requantize)
        offload = None if machine is None else offload_kernel(machine)
        kernels = (*kernels, offload) if offload is not None else tuple(kernels)
        return cls(target, config, kernels, costs or Costs(), Lowerings(target, float_module), offload)

    @property
    def unit(self) -> str:
        """What costs are in, for messages."""
        return "cycles" if self.config.optimize_for == "cycles" else "instructions"

    def bound(self, graph: Graph) -> ArenaBound | None:
        """The bound on the arena, the recipe's or its objective's, for choosing the kernels of one graph."""
        limit = self.config.arena_limit
        return None if limit is None else ArenaBound(graph, limit, self.lowerings, found=self.least_arena)

    def choose(self, view: LayerView, bound: ArenaBound | None) -> Choice:
        """The layer's kernel. Raises StageError when no kernel, or not the one a rule names, can compute it."""
        return choose(view, self.target, self.kernels, self.config.rules, self.costs, bound, self.rom)

    def cost(self, view: LayerView) -> float:
        """Instructions of the layer with its kernel, infinity where nothing can compute it.

        With what its bytes are worth, where the recipe wants little ROM.
        """
        try:
            return self.choose(view, None).price or 0.0
        except StageError:
            return float("inf")

    def cost_on_engine(self, view: LayerView, layout: str | None = None) -> float:
        """Cycles of a layer on the target's accelerator with its data as that may have it, infinity where it cannot.

        That is in other types (`signs` decides which), and with images in `layout`, if that is given. Transforms and
        flips are not in it; a rule for another kernel is obeyed.
        """
        engine = self.offload
        rule = next((rule for rule in self.config.rules if rule.match.fits(view)), None)
        if engine is None or not engine.is_for(view.op) or (rule is not None and rule.kernel != engine.name):
            return float("inf")
        if layout is not None:
            images = [tensor for tensor in (*view.inputs, *view.outputs) if len(tensor.shape) == 4]
            laid = {image.name: image.model_copy(update={"layout": Layout(layout)}) for image in images}
            view = replace(view, tensors={**view.tensors, **laid})
        able = (one for one in (view, *as_uint8(view)) if not engine.why_not(one, self.target))
        return min((engine.cost(one, engine.params(), self.target) for one in able), default=float("inf"))

    def kernels_for(self, layer: Layer) -> list[Kernel]:
        """The kernels for the layer's operator that the core can run."""
        return [kernel for kernel in self.kernels if kernel.is_for(layer.op) and not kernel.folder.why_not(self.target)]

    def is_ruled(self, view: LayerView) -> bool:
        """Whether a rule of the recipe is for the layer."""
        return any(rule.match.fits(view) for rule in self.config.rules)
