"""An accelerator as a kernel: it is chosen, named by rules and explained like any other."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from stages.backends.accelerators.tiles import why_not_tiled
from stages.backends.kernels.folder import KernelFolder
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView, Tensor
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.tensor_layout import Layout
from stages.lower.offload.machine import Machine
from stages.lower.offload.options import Option, Residence, options, smallest
from stages.lower.offload.runs import why_not_cut
from stages.lower.offload.windows import why_not_gathered

_WINDOW = (
    "kernel", "stride", "padding", "dilation", "groups", "in_channels", "out_channels", "depth_multiplier", "depth"
)  # fmt: skip


class OffloadKernel(Kernel):
    """The engine of a machine, for whole layers. It computes a layer by a program, not by TIR."""

    machine: Machine
    lowers = False

    def __init__(self) -> None:
        self._options: dict[Hashable, Mapping[Residence, tuple[Option, ...]]] = {}

    @property
    def folder(self) -> KernelFolder:
        """The accelerator's folder."""
        return self.machine.accelerator.folder

    def why_not(self, view: LayerView, target: Target) -> str:
        """Return why the engine cannot compute the layer, '' if it can.

        A reason that holds in every layout comes before one about the present layouts.
        """
        reason = super().why_not(view, target)
        if reason and self.why_not_layouts(view):
            engine_layout = {
                tensor.name: tensor.model_copy(update={"layout": Layout(self.layouts[0])}) for tensor in _images(view)
            }
            return super().why_not(replace(view, tensors={**view.tensors, **engine_layout}), target) or reason
        return reason

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        """Return why the engine cannot compute the layer in its present layouts, '' if it can."""
        if reason := self._why_not_types(view):
            return reason
        constant = [tensor.name for tensor in view.inputs if tensor.constant]
        if constant:
            return f"tensor {constant[0]} is a constant; the engine reads data only from activations"
        machine = self.machine
        reasons = (
            machine.accelerator.why_not(view),
            why_not_tiled(view),
            *map(why_not_cut, (*view.inputs, *view.outputs)),
        )
        reason = next((message for message in reasons if message), "")
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
        """Return the useful tiling candidates of the layer, by residence of its tensors."""
        key = (_window_and_shapes(view), self.machine.accelerator.tiling_key(view))
        if key not in self._options:
            self._options[key] = options(view, self.machine)
        return self._options[key]

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the cycles of the fastest option: with resident tensors, if they fit into L1."""
        return min(option.cycles for options in self.options(view).values() for option in options)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Raise RuntimeError: the engine computes layers by programs."""
        raise RuntimeError(f"internal error: {self.name} computes layers by programs")


def _images(view: LayerView) -> list[Tensor]:
    return [tensor for tensor in (*view.inputs, *view.outputs) if len(tensor.shape) == 4]


def offload_kernel(machine: Machine) -> OffloadKernel:
    """Return the kernel of a machine, with its accelerator's name."""
    accelerator = machine.accelerator
    fields = {
        "name": accelerator.name,
        "ops": accelerator.ops,
        "sources": accelerator.sources,
        "headers": accelerator.headers,
        "layouts": accelerator.layouts,
        "machine": machine,
    }
    kernel_class: OffloadKernel = type("Offloaded", (OffloadKernel,), fields)()
    return kernel_class


def _window_and_shapes(view: LayerView) -> Hashable:
    """Return what tiles read and write, and where (see tiles, runs and windows)."""
    names = (*view.layer.inputs, *view.layer.outputs)
    tensors = tuple((tensor.shape, ITEM_BYTES[tensor.dtype], tensor.layout) for tensor in (*view.inputs, *view.outputs))
    window = tuple(getattr(view.op, name, None) for name in _WINDOW)
    return view.op.op, window, tensors, tuple(map(names.index, names))
