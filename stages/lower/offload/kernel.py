"""An accelerator among the kernels that a layer may have: chosen, named by rules and explained as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stages.backends.accelerators.tiles import why_not_tiled
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.ir.graph.tensor import ITEM_BYTES
from stages.ir.tensor_layout import Layout
from stages.lower.offload.options import options, smallest
from stages.lower.offload.runs import why_not_cut
from stages.lower.offload.windows import why_not_gathered

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from stages.backends.kernels.folder import KernelFolder
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView, Tensor
    from stages.lower.offload.machine import Machine
    from stages.lower.offload.options import Option, Residence

_WINDOW = (
    "kernel", "stride", "padding", "dilation", "groups", "in_channels", "out_channels", "depth_multiplier", "depth"
)  # fmt: skip


class OffloadKernel(Kernel):
    """The engine of a machine, for whole layers. What computes such a layer is a program, no TIR."""

    machine: Machine
    lowers = False

    def __init__(self) -> None:
        self._options: dict[Hashable, Mapping[Residence, tuple[Option, ...]]] = {}

    @property
    def folder(self) -> KernelFolder:
        return self.machine.accelerator.folder

    def why_not(self, view: LayerView, target: Target) -> str:
        """A reason that holds in every layout comes before that of the layouts that the tensors have now."""
        reason = super().why_not(view, target)
        if reason and self.why_not_layouts(view):
            own = {one.name: one.model_copy(update={"layout": Layout(self.layouts[0])}) for one in _images(view)}
            return super().why_not(replace(view, tensors={**view.tensors, **own}), target) or reason
        return reason

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if reason := self._why_not_types(view):
            return reason
        constant = [tensor.name for tensor in view.inputs if tensor.constant]
        if constant:
            return f"tensor {constant[0]} is a constant, which is read as data"
        machine = self.machine
        reasons = (
            machine.accelerator.why_not(view),
            why_not_tiled(view),
            *map(why_not_cut, (*view.inputs, *view.outputs)),
        )
        reason = next((one for one in reasons if one), "")
        if not reason and machine.accelerator.reads_windows(view):
            reason = why_not_gathered(view)
        anywhere = (False,) * (len(view.inputs) + 1)
        if reason or anywhere in self.options(view):
            return reason
        return f"its smallest tile takes {smallest(view, machine):,} bytes; {machine.memory} has {machine.bytes:,}"

    def _why_not_types(self, view: LayerView) -> str:
        accelerator = self.machine.accelerator
        for tensors, able, does in (
            (view.inputs, accelerator.reads(view), "reads"),
            (view.outputs, accelerator.writes(view), "writes"),
        ):
            for tensor in tensors:
                if tensor.dtype not in able:
                    return f"tensor {tensor.name} is {tensor.dtype}; {accelerator.title} {does} {' and '.join(able)}"
        return ""

    def options(self, view: LayerView) -> Mapping[Residence, tuple[Option, ...]]:
        """Return the layer's options by residence of its tensors."""
        key = (_window_and_shapes(view), self.machine.accelerator.tiling_key(view))
        if key not in self._options:
            self._options[key] = options(view, self.machine)
        return self._options[key]

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Cycles where the layer's tensors lie in the engine's memory, if that has room; else with their transfers."""
        return min(one.cycles for those in self.options(view).values() for one in those)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        raise RuntimeError(f"internal error: {self.name} computes layers by programs")


def _images(view: LayerView) -> list[Tensor]:
    return [tensor for tensor in (*view.inputs, *view.outputs) if len(tensor.shape) == 4]


def offload_kernel(machine: Machine) -> OffloadKernel:
    """The kernel of a machine, called as its accelerator."""
    accelerator = machine.accelerator
    fields = {
        "name": accelerator.name,
        "ops": accelerator.ops,
        "sources": accelerator.sources,
        "headers": accelerator.headers,
        "layouts": accelerator.layouts,
        "machine": machine,
    }
    made: OffloadKernel = type("Offloaded", (OffloadKernel,), fields)()
    return made


def _window_and_shapes(view: LayerView) -> Hashable:
    """What tiles read and write, and where that lies (stages.backends.accelerators.tiles, runs, windows)."""
    names = (*view.layer.inputs, *view.layer.outputs)
    tensors = tuple((tensor.shape, ITEM_BYTES[tensor.dtype], tensor.layout) for tensor in (*view.inputs, *view.outputs))
    window = tuple(getattr(view.op, name, None) for name in _WINDOW)
    return view.op.op, window, tensors, tuple(map(names.index, names))
