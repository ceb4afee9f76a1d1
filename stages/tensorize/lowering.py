"""Layers as scheduled TIR, each made once for all passes that ask: what a kernel's scratch is, only lowering tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stages.ir.graph import place
from stages.support.messages import escape
from stages.tensorize.plan import Step

if TYPE_CHECKING:
    import numpy as np

    from stages.backends.kernels.kernel import Kernel, Lowering
    from stages.backends.targets.spec import Target
    from stages.ir.graph import Layer, LayerView


@dataclass(frozen=True)
class Lowered:
    """A layer's functions by name, in the order of `steps`, which call them.

    lowering   what the kernel said of a layer that has one
    constants  of a float layer, by key: TVM finds and packs them as it lowers
    """

    functions: Mapping[str, Any]
    steps: tuple[Step, ...]
    lowering: Lowering | None = None
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)


class Lowerings:
    """Lowers layers for a target. `float_module` has the Relax functions of float operators."""

    def __init__(self, target: Target, float_module: Any = None) -> None:
        self._target = target
        self._float_module = float_module
        self._made: dict[str, Lowered] = {}
        self._scratch: dict[int, tuple[Lowered, dict[str, int]]] = {}  # by id, which the layer beside it keeps

    def of_kernel(self, view: LayerView, kernel: Kernel, params: Any) -> Lowered:
        """The layer computed by a kernel that can; nothing of one that leaves a program."""
        if not kernel.lowers:
            return Lowered({}, ())
        view = kernel.seen(view)
        key = _key(view, kernel, params)
        if key not in self._made:
            self._made[key] = self._with_kernel(view, kernel, params)
        return self._made[key]

    def of_float(self, layer: Layer) -> Lowered:
        """A float layer, computed by TVM's own operators."""
        from stages.tensorize.float_layer import lower_float

        name = function_name(layer)
        if name not in self._made:
            op: Any = layer.op
            made = lower_float(self._float_module, op.function, name)
            functions = {each: _named(func, each) for each, func in made.functions.items()}
            self._made[name] = Lowered(functions, made.steps, constants=made.constants)
        return self._made[name]

    def scratch(self, layers: Sequence[Lowered]) -> list[dict[str, int]]:
        """Bytes by name of the scratch that emit will plan for each of the layers, which have names of their own."""
        from stages.lower.codegen.layers import scratch_of
        from stages.lower.codegen.lower import to_c

        new = [layer for layer in layers if id(layer) not in self._scratch]
        functions = {name: function for layer in new for name, function in layer.functions.items()}
        printed = to_c(functions, {step.function: step.roles for layer in new for step in layer.steps})
        for layer in new:
            self._scratch[id(layer)] = layer, scratch_of(printed[step.function] for step in layer.steps)
        return [self._scratch[id(layer)][1] for layer in layers]

    def _with_kernel(self, view: LayerView, kernel: Kernel, params: Any) -> Lowered:
        from stages.tensorize.schedule import schedule

        layer, name = view.layer, function_name(view.layer)
        lowering = kernel.lower(view, params, self._target)
        scheduled = schedule(lowering, kernel.name, f"{layer.index} ({escape.name(layer.name)})")
        return Lowered({name: _named(scheduled, name)}, (Step(function=name, roles=lowering.roles),), lowering)


def function_name(layer: Layer) -> str:
    """`layer_003_conv2d`: the name of the layer's function in the emitted C."""
    kind = "".join(c if c.isalnum() else "_" for c in layer.kind.lower())
    return f"layer_{layer.index:03d}_{kind}"


def _named(function: Any, name: str) -> Any:
    return function.with_attr("global_symbol", name)


def _key(view: LayerView, kernel: Kernel, params: Any) -> str:
    """All that a kernel may look at as it lowers: the layer, its tensors, and where they lie in others."""
    tensors = (*view.inputs, *view.outputs)
    parts = [kernel.name, params.model_dump_json(), view.layer.model_dump_json()]
    parts += [f"{tensor.model_dump_json()} {place(view.tensors, tensor.name)}" for tensor in tensors]
    return "\n".join(parts)
