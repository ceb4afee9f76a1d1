"""Lower layers to scheduled TIR, each once for all passes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import Layer, LayerView, storage_of
from stages.lower.codegen.layers import scratch_of
from stages.lower.codegen.lower import to_c
from stages.support.messages import escape
from stages.tensorize.float_bands import band_function
from stages.tensorize.float_product import FloatUnit
from stages.tensorize.float_vectors import with_float_vectors
from stages.tensorize.plan import Step
from stages.tensorize.schedule import schedule


@dataclass(frozen=True)
class Lowered:
    """A layer's functions by name, in the order of `steps`, which call them.

    lowering   the kernel's lowering, None for float layers
    constants  of a float layer, by key; TVM packs them when it lowers
    """

    functions: Mapping[str, Any]
    steps: tuple[Step, ...]
    lowering: Lowering | None = None
    constants: Mapping[str, Array] = field(default_factory=dict)


class Lowerings:
    """Lower layers for a target. `float_module` has the Relax functions of float operators."""

    def __init__(self, target: Target, float_module: Any = None) -> None:
        self._target = target
        self._float_module = float_module
        self._cache: dict[str, Lowered] = {}
        self._declared: dict[str, dict[str, int]] = {}
        self._scratch: dict[int, tuple[Lowered, dict[str, int]]] = {}  # by id; the value keeps the object alive

    def of_kernel(self, view: LayerView, kernel: Kernel, params: Any) -> Lowered:
        """Lower a layer with a kernel. Empty for kernels that compute by programs."""
        if not kernel.lowers:
            return Lowered({}, ())
        view = kernel.seen(view)
        key = _key(view, kernel, params)
        if key not in self._cache:
            self._cache[key] = self._with_kernel(view, kernel, params)
        return self._cache[key]

    def declared_scratch(self, view: LayerView, kernel: Kernel, params: Any) -> dict[str, int]:
        """Return scratch bytes by name as `scratch`, or a few more, without lowering."""
        from stages.backends.kernels.tir.block import declared_scratch

        if not kernel.lowers:
            return {}
        view = kernel.seen(view)
        key = _key(view, kernel, params)
        if key not in self._declared:
            declared = declared_scratch(lambda: kernel.lower(view, params, self._target))
            if declared is None:
                (declared,) = self.scratch([self.of_kernel(view, kernel, params)])
            self._declared[key] = declared
        return self._declared[key]

    def of_float(self, layer: Layer, rows: int = 0, suffix: str = "") -> Lowered:
        """Lower a float layer with TVM's operators: whole tensors, or `rows` rows of output.

        suffix  of the functions' names
        """
        from stages.tensorize.float_layer import lower_float

        name = f"{function_name(layer)}{suffix}"
        key = f"{name} {rows}"
        if key not in self._cache:
            op: Any = layer.op
            core = self._target
            unit = FloatUnit(core.float_lanes, core.float_registers, core.flushes_subnormals, core.keeps_order)
            function = self._float_module[op.function]
            lowering = lower_float(band_function(function, op.rows, rows) if rows else function, name, unit)
            functions = {step_name: _named(func, step_name) for step_name, func in lowering.functions.items()}
            self._cache[key] = Lowered(functions, lowering.steps, constants=lowering.constants)
        return self._cache[key]

    def scratch(self, layers: Sequence[Lowered]) -> list[dict[str, int]]:
        """Return scratch bytes by name for each layer, as emit plans them."""
        new = [layer for layer in layers if id(layer) not in self._scratch]
        # Calls of a layer for different numbers of rows have equal names.
        named = {f"{i}/{step.function}": (layer, step) for i, layer in enumerate(new) for step in layer.steps}
        functions = {name: layer.functions[step.function] for name, (layer, step) in named.items()}
        printed = to_c(functions, {name: step.roles for name, (_, step) in named.items()})
        for i, layer in enumerate(new):
            self._scratch[id(layer)] = layer, scratch_of(printed[f"{i}/{step.function}"] for step in layer.steps)
        return [self._scratch[id(layer)][1] for layer in layers]

    def _with_kernel(self, view: LayerView, kernel: Kernel, params: Any) -> Lowered:
        layer, name = view.layer, function_name(view.layer)
        lowering = kernel.lower(view, params, self._target)
        scheduled = schedule(lowering, kernel.name, f"{layer.index} ({escape.name(layer.name)})")
        if self._target.flushes_subnormals:
            scheduled = with_float_vectors(scheduled, is_vectorized=False, reduces=True)
        return Lowered({name: _named(scheduled, name)}, (Step(function=name, roles=lowering.roles),), lowering)


def function_name(layer: Layer) -> str:
    """Return the layer's C function name, such as `layer_003_conv2d`."""
    kind = "".join(c if c.isalnum() else "_" for c in layer.kind.lower())
    return f"layer_{layer.index:03d}_{kind}"


def _named(function: Any, name: str) -> Any:
    return function.with_attr("global_symbol", name)


def _key(view: LayerView, kernel: Kernel, params: Any) -> str:
    """Return everything that a kernel may read to lower a layer."""
    return "\n".join([kernel.name, params.model_dump_json(), layer_key(view)])


def layer_key(view: LayerView) -> str:
    """Return everything of a layer except for the values of its constants."""
    tensors = (*view.inputs, *view.outputs, *view.states)
    parts = [f"{tensor.model_dump_json()} {storage_of(view.tensors, tensor.name)}" for tensor in tensors]
    return "\n".join([view.layer.model_dump_json(), *parts])
