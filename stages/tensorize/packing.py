"""The last pass: pack constants, lower layers to functions, write the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from stages.backends.kernels.kernel import Kernel, Lowering, RowSumKernel
from stages.backends.kernels.registry import folders_of
from stages.backends.targets.spec import Target
from stages.base import no_progress
from stages.ir.graph import Graph, Layer, LayerView
from stages.ir.operators.conversions import Dequantize, Quantize
from stages.ir.operators.floats import Float
from stages.lower.offload.attach import attachment
from stages.lower.streaming.bands import with_all_tables
from stages.lower.streaming.row_places import ROW_TABLES, source_rows
from stages.support.lazy import np
from stages.support.messages import escape
from stages.support.messages.wording import several
from stages.tensorize.artifact import Tensorized
from stages.tensorize.float_cost import float_cost
from stages.tensorize.lowering import function_name
from stages.tensorize.narrow import narrowed_layer, packable
from stages.tensorize.plan import LayerPlan, Step, TensorizePlan
from stages.tensorize.schedule import schedule

if TYPE_CHECKING:
    from stages.tensorize.choices import Band, Chosen
    from stages.tensorize.pass_context import PassContext
    from stages.tensorize.select import Choice


def pack_and_lower(chosen: Chosen, context: PassContext, progress: Callable[..., None] = no_progress) -> Tensorized:
    """Return the artifact. Raises RuntimeError for an inconsistent kernel (an internal error)."""
    graph, plans = chosen.graph, []
    functions: dict[str, Any] = {}
    weights: dict[str, np.ndarray] = {}
    soft: dict[int, float] = {}
    for layer in graph.layers:
        progress(f"layer {layer.index} {layer.kind}", layer.index / len(graph.layers))
        if isinstance(layer.op, Float):
            without_fpu = context.target.model_copy(update={"fpu": False})
            soft[layer.index] = float_cost(context.lowerings.of_float(layer).functions.values(), without_fpu)
        if layer.index in chosen.streamed:
            plan, layer_functions, constants = _streamed_layer(chosen, layer, context)
        elif isinstance(layer.op, Float):
            plan, layer_functions, constants = _float_layer(layer, context)
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
    warnings = (*chosen.warnings, *float_warnings(graph, soft, context.target), *unused_extensions(context.target))
    machine = None if context.offload is None or not chosen.offload.programs else context.offload.machine
    plan_of_all = TensorizePlan(
        target=context.target.core,
        layers=tuple(plans),
        unused_rules=chosen.unused_rules,
        warnings=warnings,
        attachment=None if machine is None else attachment(machine, context.target, chosen.offload.resident),
        timeline=chosen.offload.timeline,
        search=chosen.offload.search,
        groups=chosen.groups,
        streaming=chosen.streaming,
    )
    return Tensorized(plan_of_all, graph, functions, weights)


LayerArtifact = tuple[LayerPlan, Mapping[str, Any], Mapping[str, "np.ndarray"]]  # plan, functions, constants


def _kernel_layer(chosen: Chosen, layer: Layer, context: PassContext) -> LayerArtifact:
    return _with_kernel(chosen, chosen.choices[layer.index], chosen.graph.view(layer), context)


def _streamed_layer(chosen: Chosen, layer: Layer, context: PassContext) -> LayerArtifact:
    """Return the layer's call, with what a first or last call of fewer rows needs."""
    streamed = chosen.streamed[layer.index]
    band, rest = streamed.band, streamed.rest
    if band.choice is not None and isinstance(band.choice.kernel, RowSumKernel):
        return _summed_layer(chosen, layer, band.choice, band.choice.kernel, context)
    plan, functions, packed = _band(chosen, band, context)
    rows = band.view.outputs[0].shape[1]
    cost = band.cost * streamed.calls
    update: dict[str, Any] = {"rows": rows, "cost": cost, "may_overlay": False, "packable": None}
    if rest is not None:
        of_rest = _band(chosen, rest, context, suffix="_rest")
        steps = tuple(Step(function=s.function, roles=tuple(map(_of_rest, s.roles))) for s in of_rest[0].steps)
        functions = {**functions, **of_rest[1]}
        packed = {**packed, **{f"rest_{key}": array for key, array in of_rest[2].items()}}
        update |= {
            "rest": steps,
            "cost": cost + rest.cost * streamed.rests,
            "constants": {key: f"{layer.index:03d}.{key}" for key in packed},
            "sources": tuple(dict.fromkeys((*plan.sources, *of_rest[0].sources))),
            "headers": tuple(dict.fromkeys((*plan.headers, *of_rest[0].headers))),
        }
    if source_rows(band.view) is not None:
        height = chosen.graph.tensors[layer.outputs[0]].shape[1]
        tables = {key: array for key, array in packed.items() if key.removeprefix("rest_") in ROW_TABLES}
        update["row_tables"] = {key: array.nbytes // height for key, array in tables.items()}
    return plan.model_copy(update=update), functions, packed


def _band(chosen: Chosen, band: Band, context: PassContext, suffix: str = "") -> LayerArtifact:
    """Return the call of a layer on few rows; `suffix` of its functions' names."""
    if band.choice is None:
        return _float_layer(band.view.layer, context, band.view.outputs[0].shape[1], suffix)
    plan, functions, packed = _with_kernel(chosen, band.choice, band.view, context)
    packed = {**packed, **_all_rows(chosen, band, band.choice, context)}
    steps = tuple(step.model_copy(update={"function": f"{step.function}{suffix}"}) for step in plan.steps)
    named = {f"{n}{suffix}": function.with_attr("global_symbol", f"{n}{suffix}") for n, function in functions.items()}
    return plan.model_copy(update={"steps": steps}), named, packed


def _all_rows(chosen: Chosen, band: Band, choice: Choice, context: PassContext) -> Mapping[str, np.ndarray]:
    """Return the tables of all rows of a resize, {} of other layers."""
    if source_rows(band.view) is None:
        return {}
    index, kernel = band.view.layer.index, choice.kernel
    layer = next(x for group in chosen.groups for x in group.layers if x.index == index)
    view = with_all_tables(replace(chosen.graph.view(chosen.graph.layers[index]), tensors=band.view.tensors), layer)
    packed = kernel.pack_for(kernel.seen(view), choice.params, context.target)
    return {key: array for key, array in packed.items() if key in ROW_TABLES}


def _summed_layer(
    chosen: Chosen, layer: Layer, choice: Choice, kernel: RowSumKernel, context: PassContext
) -> LayerArtifact:
    """Return the calls of a layer that adds up rows.

    There is a call for a band, for the last band, and for the result.
    """
    view, target = chosen.graph.view(layer), context.target
    name = function_name(layer)
    rows = next(x.rows for group in chosen.groups for x in group.layers if x.index == layer.index)
    height = view.inputs[0].shape[1]
    lowerings = {name: kernel.lower_rows(view, rows, target), f"{name}_result": kernel.lower_result(view, target)}
    if height % rows:
        lowerings[f"{name}_rest"] = kernel.lower_rows(view, height % rows, target)
    where = f"{layer.index} ({escape.name(layer.name)})"
    functions = {
        called: schedule(lowering, kernel.name, where).with_attr("global_symbol", called)
        for called, lowering in lowerings.items()
    }
    steps = {called: (Step(function=called, roles=lowering.roles),) for called, lowering in lowerings.items()}
    packed = dict(kernel.pack(view, choice.params))
    plan = _plan(
        layer,
        packed,
        kernel=kernel.name,
        why=choice.why,
        cost=(choice.cost or 0.0) * (height // rows) + kernel.cost_result(view, target),
        cost_source="estimated",
        steps=steps[name],
        rest=steps.get(f"{name}_rest", ()),
        result=steps[f"{name}_result"],
        rows=rows,
        sources=_files(kernel, kernel.sources),
        headers=_files(kernel, kernel.headers),
    )
    return plan, functions, packed


def _of_rest(role: str) -> str:
    kind, _, key = role.partition(":")
    return f"{kind}:rest_{key}" if kind == "constant" else role


def _with_kernel(chosen: Chosen, choice: Choice, view: LayerView, context: PassContext) -> LayerArtifact:
    kernel, layer = choice.kernel, view.layer
    view = kernel.seen(view)
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
        sources=_files(kernel, kernel.sources_for(view, choice.params, context.target)),
        headers=_files(kernel, kernel.headers_for(view, choice.params, context.target)),
        may_overlay=kernel.overlays(view),
    )
    narrow = context.config.narrow_weights
    if chosen.rom is not None:
        narrow = bool(chosen.rom.storage(view, kernel, choice.params).scratch)
    if narrow:
        return narrowed_layer(plan, lowered.functions, packed)
    return plan.model_copy(update={"packable": packable(plan, packed)}), lowered.functions, packed


def _files(kernel: Kernel, names: Iterable[str]) -> tuple[str, ...]:
    """Return `names` as folder/file."""
    return tuple(normpath(f"{kernel.folder.name}/{name}") for name in names)


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


def _float_layer(layer: Layer, context: PassContext, rows: int = 0, suffix: str = "") -> LayerArtifact:
    lowered = context.lowerings.of_float(layer, rows, suffix)
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


_SHOWN = 4


def unused_extensions(target: Target) -> Iterator[str]:
    """Return a warning for each extension of the core that none of its kernels needs or uses."""
    records = folders_of(target)
    for extension, version in target.extensions.items():
        if not any(record.concerns(extension, version) for record in records.values()):
            kernels = ", ".join(map(escape.name, records))
            shown = f"{escape.name(extension)} {escape.name(version)}"
            yield f"extension {shown}: no kernel of the core uses it ({kernels})"


def float_warnings(graph: Graph, soft: Mapping[int, float], target: Target) -> tuple[str, ...]:
    """Warn about float layers without a floating-point unit, or between integer layers.

    soft: instructions per inference on a core without floating-point unit, for each float layer by index.
    """
    layers = [layer for layer in graph.layers if layer.index in soft]
    if target.fpu:
        layers = _between_integers(graph, layers)
    if not layers:
        return ()
    count = "1 float layer" if len(layers) == 1 else f"{len(layers)} float layers"
    total = _rounded(sum(soft[layer.index] for layer in layers))
    costly = sorted(layers, key=lambda layer: -soft[layer.index])
    named = several([f"{escape.quoted(layer.name)} ({layer.kind})" for layer in costly], _SHOWN)
    if not target.fpu:
        what = f"{target.core} has no floating-point unit: {count} will take some {total} instructions per inference"
    else:
        what = f"{count} between integers: a core without floating-point unit takes some {total} instructions for them"
    return (f"{what}: {named}",)


def _between_integers(graph: Graph, layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers between a DEQUANTIZE and a float QUANTIZE."""
    behind: set[str] = set()
    for layer in graph.layers:
        is_behind = not isinstance(layer.op, Quantize) and behind.intersection(layer.inputs)
        if is_behind or isinstance(layer.op, Dequantize):
            behind.update(layer.outputs)
    before: set[str] = set()
    for layer in reversed(graph.layers):
        is_before = not isinstance(layer.op, Dequantize) and before.intersection(layer.outputs)
        if is_before or isinstance(layer.op, Quantize):
            before.update(layer.inputs)
    return [layer for layer in layers if behind.intersection(layer.inputs) and before.intersection(layer.outputs)]


def _rounded(cost: float) -> str:
    """Format a cost with two significant digits and thousands separators."""
    return f"{float(f'{cost:.2g}'):,.0f}"
