"""The last pass: pack constants, lower layers to functions, write the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from stages.base import no_progress
from stages.ir.operators.floats import Float
from stages.lower.offload.attach import attachment
from stages.support.messages import escape
from stages.tensorize.artifact import Tensorized
from stages.tensorize.float_cost import float_cost
from stages.tensorize.float_warnings import float_warnings
from stages.tensorize.narrow import narrowed_layer, packable
from stages.tensorize.plan import LayerPlan, TensorizePlan

if TYPE_CHECKING:
    import numpy as np

    from stages.backends.kernels.kernel import Lowering
    from stages.ir.graph import Layer
    from stages.tensorize.choices import Chosen
    from stages.tensorize.pass_context import PassContext


def pack_and_lower(chosen: Chosen, context: PassContext, progress: Callable[..., None] = no_progress) -> Tensorized:
    """Return the artifact. Raises RuntimeError for an inconsistent kernel (an internal error)."""
    graph, plans = chosen.graph, []
    functions: dict[str, Any] = {}
    weights: dict[str, np.ndarray] = {}
    soft: dict[int, float] = {}
    for layer in graph.layers:
        progress(f"layer {layer.index} {layer.kind}", layer.index / len(graph.layers))
        if isinstance(layer.op, Float):
            plan, layer_functions, constants = _float_layer(layer, context)
            soft[layer.index] = float_cost(layer_functions.values(), context.target.model_copy(update={"fpu": False}))
        elif layer.index in chosen.offload.programs:
            plan, layer_functions, constants = _offloaded_layer(layer, chosen)
        elif layer.index in chosen.choices:
            plan, layer_functions, constants = _kernel_layer(chosen, layer, context)
        else:
            plans.append(_plan(layer, {}, kernel="alias", why="input and output share memory"))
            continue
        plans.append(plan.model_copy(update={"predicted": chosen.offload.times.get(layer.index)}))
        functions |= layer_functions
        weights |= {plan.constants[key]: array for key, array in constants.items()}
    warnings = (*chosen.warnings, *float_warnings(graph, soft, context.target))
    machine = None if context.offload is None or not chosen.offload.programs else context.offload.machine
    plan_of_all = TensorizePlan(
        target=context.target.core,
        layers=tuple(plans),
        unused_rules=chosen.unused_rules,
        warnings=warnings,
        attachment=None if machine is None else attachment(machine, context.target, chosen.offload.resident),
        timeline=chosen.offload.timeline,
        search=chosen.offload.search,
    )
    return Tensorized(plan_of_all, graph, functions, weights)


LayerArtifact = tuple[LayerPlan, Mapping[str, Any], Mapping[str, "np.ndarray"]]  # plan, functions, constants


def _kernel_layer(chosen: Chosen, layer: Layer, context: PassContext) -> LayerArtifact:
    choice = chosen.choices[layer.index]
    kernel = choice.kernel
    view = kernel.seen(chosen.graph.view(layer))
    packed = dict(kernel.pack_for(view, choice.params, context.target))
    lowered = context.lowerings.of_kernel(view, kernel, choice.params)
    if lowered.lowering is not None:
        _check_roles(lowered.lowering, packed, kernel.name, layer)
    plan = _plan(
        layer,
        packed,
        kernel=kernel.name,
        params=choice.params.model_dump(mode="json"),
        why=choice.why,
        cost=choice.cost,
        cost_source=choice.cost_source,
        alternatives=choice.alternatives,
        steps=lowered.steps,
        sources=tuple(normpath(f"{kernel.folder.name}/{source}") for source in kernel.sources),
        headers=tuple(normpath(f"{kernel.folder.name}/{header}") for header in kernel.headers),
        may_overlay=kernel.overlays(view),
    )
    narrow = context.config.narrow_weights
    if chosen.rom is not None:
        narrow = bool(chosen.rom.storage(chosen.graph.view(layer), kernel, choice.params).scratch)
    if narrow:
        return narrowed_layer(plan, lowered.functions, packed)
    return plan.model_copy(update={"packable": packable(plan, packed)}), lowered.functions, packed


def _offloaded_layer(layer: Layer, chosen: Chosen) -> LayerArtifact:
    choice, constants = chosen.choices[layer.index], chosen.offload.constants[layer.index]
    plan = _plan(
        layer,
        constants,
        kernel=choice.kernel.name,
        why=choice.why,
        cost=chosen.offload.times[layer.index].cycles,
        cost_source="modelled",
        alternatives=choice.alternatives,
        program=chosen.offload.programs[layer.index],
        distance=choice.distance,
    )
    return plan, {}, constants


def _float_layer(layer: Layer, context: PassContext) -> LayerArtifact:
    lowered = context.lowerings.of_float(layer)
    plan = _plan(
        layer,
        lowered.constants,
        kernel="tvm",
        why="float operator, lowered by TVM",
        cost=round(float_cost(lowered.functions.values(), context.target)),
        cost_source="estimated",
        steps=lowered.steps,
    )
    return plan, lowered.functions, lowered.constants


def _plan(layer: Layer, constants: Mapping[str, Any], **decided: Any) -> LayerPlan:
    keys = {key: f"{layer.index:03d}.{key}" for key in constants}
    return LayerPlan(index=layer.index, name=layer.name, op=layer.kind, constants=keys, **decided)


def _check_roles(lowering: Lowering, packed: Mapping[str, np.ndarray], kernel: str, layer: Layer) -> None:
    """Check that roles match buffers, and packed constants their buffers' type and size."""
    where = f"internal error: kernel {kernel}, layer {layer.index} ({escape.name(layer.name)})"
    if len(lowering.roles) != len(lowering.workload.params):
        raise RuntimeError(f"{where}: {len(lowering.workload.params)} parameters, roles {lowering.roles}")
    for buffer, role in zip(lowering.workload.params, lowering.roles, strict=True):
        kind, _, key = role.partition(":")
        if kind != "constant":
            continue
        if key not in packed:
            raise RuntimeError(f"{where}: pack() gives no constant {key}")
        elements = 1
        for extent in buffer.shape:
            elements *= int(extent)
        if str(packed[key].dtype) != str(buffer.dtype) or packed[key].size != elements:
            packed_type = f"{packed[key].dtype}[{packed[key].size}]"
            raise RuntimeError(f"{where}: constant {key} is {packed_type}, its buffer {buffer.dtype}[{elements}]")
