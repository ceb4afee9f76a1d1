"""Runs the stage: graph in; plan.json, tir.json and weights.npz out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from stages import escape
from stages.base import StageError
from stages.graph import Graph, Layer, LayerView
from stages.kernels import registry
from stages.tensorize.costs import CostTable, estimated
from stages.tensorize.forms import cheapest_forms
from stages.tensorize.memory import ArenaBound
from stages.tensorize.plan import LayerPlan, Step, TensorizePlan
from stages.tensorize.schedule import schedule
from stages.tensorize.select import choose, unused_rules
from stages.tensorize.sharing import renames_only, share

if TYPE_CHECKING:
    import numpy as np

    from stages.base import Job
    from stages.kernels.kernel import Kernel, Lowering
    from stages.targets.spec import Target
    from stages.tensorize import TensorizeConfig

TIR = "tir.json"
WEIGHTS = "weights.npz"


@dataclass
class Tensorized:
    """Everything the stage writes, in memory: the plan, PrimFuncs by name, packed constants by key.

    The graph is the stage's input with the forms of layers that were chosen, and tensors that are parts of others.
    """

    plan: TensorizePlan
    graph: Graph
    functions: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, np.ndarray] = field(default_factory=dict)


def tensorize(job: Job[TensorizeConfig]) -> None:
    """Writes the stage's artifact into the job's folder."""
    source = job.inputs["quantize"]
    kernels = list(registry.kernels(job.target.kernels).values())
    costs = CostTable.read(job.files["costs"]) if "costs" in job.files else CostTable()
    graph = _with_cheapest_forms(Graph.load(source), job.target, job.config, kernels, costs)
    made = tensorize_graph(
        graph,
        job.target,
        job.config,
        kernels,
        costs=costs,
        float_module=_float_module(source),
        progress=job.progress,
    )
    made = _with_shared_memory(made, job.target, kernels)
    for warning in made.plan.warnings:
        job.log(f"warning: {warning}")
    save(made, job.out)


def tensorize_graph(
    graph: Graph,
    target: Target,
    config: TensorizeConfig,
    kernels: Iterable[Kernel],
    *,
    costs: CostTable | None = None,
    float_module: Any = None,
    progress: Any = None,
) -> Tensorized:
    """Chooses, packs, lowers and schedules every layer. Raises StageError for a layer that nothing can compute.

    Without `costs` the kernels' own estimates decide.
    """
    chosen = list(kernels)
    costs = costs or CostTable()
    bound = None if config.arena_limit is None else ArenaBound(graph, target, config.arena_limit)
    plans: list[LayerPlan] = []
    made = Tensorized(TensorizePlan(target=target.core, layers=()), graph)
    for layer in graph.layers:
        if progress is not None:
            progress(f"layer {layer.index} {layer.kind}", layer.index / len(graph.layers))
        view = graph.view(layer)
        if renames_only(graph, layer):
            plans.append(_plan(layer, kernel="alias", why="input and output share memory"))
        elif layer.op.op == "float":
            plans.append(_float_layer(layer, target, float_module, made))
        else:
            plans.append(_kernel_layer(view, target, chosen, config, costs, made, bound))
    ruled = [
        v for v, plan in zip(map(graph.view, graph.layers), plans, strict=True) if plan.kernel not in ("alias", "tvm")
    ]
    unused, about_rules = unused_rules(config.rules, ruled)
    limited = () if bound is None else bound.warnings()
    warnings = (*about_rules, *limited, *_outdated(plans, chosen, costs, target), *_soft_float(plans, target))
    made.plan = TensorizePlan(target=target.core, layers=tuple(plans), unused_rules=unused, warnings=warnings)
    return made


def _with_cheapest_forms(
    graph: Graph, target: Target, config: TensorizeConfig, kernels: list[Kernel], costs: CostTable
) -> Graph:
    def price(one: Graph, layer: Layer) -> float:
        if layer.op.op == "float" or renames_only(one, layer):
            return 0.0
        bound = None if config.arena_limit is None else ArenaBound(one, target, config.arena_limit)
        try:
            cost = choose(one.view(layer), target, kernels, config.rules, costs, bound).cost
        except StageError:  # in this form nothing can compute it; where no form can, the choice of kernels says so
            return float("inf")
        return float("inf") if cost is None else cost

    def is_ruled(one: Graph, layer: Layer) -> bool:
        return any(rule.match.fits(one.view(layer)) for rule in config.rules)

    return cheapest_forms(graph, price, is_ruled)


def _with_shared_memory(made: Tensorized, target: Target, kernels: list[Kernel]) -> Tensorized:
    """Layers whose inputs or outputs can be parts of larger tensors have less to copy, or nothing at all."""
    old = made.graph
    overlaid = frozenset(plan.index for plan in made.plan.layers if plan.may_overlay)
    made.graph = share(old, lambda: _scratch(made), overlaid)
    if made.graph is old:
        return made
    named, plans = {kernel.name: kernel for kernel in kernels}, list(made.plan.layers)
    for layer in made.graph.layers:
        plan = plans[layer.index]
        if plan.kernel in ("alias", "tvm"):
            continue
        if renames_only(made.graph, layer):
            del made.functions[function_name(layer)]
            plans[layer.index] = _plan(layer, kernel="alias", why="input and output share memory")
        elif layer.op.op == "concatenation":
            kernel = named[plan.kernel]
            params = kernel.params.model_validate(plan.params)
            view = made.graph.view(layer)
            step = _lowered(view, kernel, kernel.lower(view, params, target), made)
            cost = {"cost": estimated(kernel, view, params, target), "cost_source": "estimated"}
            plans[layer.index] = plan.model_copy(update={"steps": (step,), **cost})
    made.plan = made.plan.model_copy(update={"layers": tuple(plans)})
    return made


def _scratch(made: Tensorized) -> dict[int, Mapping[str, int]]:
    """Bytes by name of the scratch of each layer, as emit will plan it."""
    from stages.codegen.layers import scratch_of
    from stages.codegen.lower import to_c

    steps = [step for layer in made.plan.layers for step in layer.steps]
    printed = to_c(made.functions, {step.function: step.roles for step in steps})
    return {
        layer.index: scratch_of(printed[step.function] for step in layer.steps)
        for layer in made.plan.layers
        if layer.steps
    }


def _outdated(
    plans: Iterable[LayerPlan], kernels: Iterable[Kernel], costs: CostTable, target: Target
) -> tuple[str, ...]:
    """A sentence when layers had a choice of kernels and the measurements of one are of another version of it."""
    compared: set[str] = set()
    for plan in plans:
        others = {other.kernel for other in plan.alternatives if not other.reason}
        compared |= {plan.kernel, *others} if others else set()
    names = sorted(kernel.name for kernel in kernels if kernel.name in compared and costs.outdated(kernel))
    if not names:
        return ()
    which = f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} changed since measured"
    return (f"{which}, so costs are estimated: doit calibrate target={target.core}",)


def _soft_float(plans: Iterable[LayerPlan], target: Target) -> tuple[str, ...]:
    """A sentence where float layers run on a core without a floating-point unit: what they will take."""
    soft = [plan.cost or 0 for plan in plans if plan.kernel == "tvm"]
    if target.fpu or not soft:
        return ()
    layers = "1 float layer" if len(soft) == 1 else f"{len(soft)} float layers"
    cost = f"{float(f'{sum(soft):.2g}'):,.0f}"
    return (f"{target.core} has no floating-point unit: {layers} will take some {cost} instructions per inference",)


def function_name(layer: Layer) -> str:
    """`layer_003_conv2d`: the name of the layer's function in the emitted C."""
    kind = "".join(c if c.isalnum() else "_" for c in layer.kind.lower())
    return f"layer_{layer.index:03d}_{kind}"


def save(made: Tensorized, folder: Path) -> None:
    """Writes plan.json, tir.json, weights.npz and the graph's files; the same content gives the same bytes."""
    import numpy as np
    import tvm

    made.plan.save(folder)
    made.graph.save(folder)
    module = tvm.IRModule({tvm.ir.GlobalVar(name): func for name, func in made.functions.items()})
    (folder / TIR).write_text(_without_paths(tvm.ir.save_json(module)) + "\n")
    weights: dict[str, Any] = {key: made.weights[key] for key in sorted(made.weights)}
    np.savez(folder / WEIGHTS, **weights)


def _without_paths(text: str) -> str:
    """TVM's JSON without the Python file names that its script parser notes: they differ from machine to machine."""
    tree = json.loads(text)
    for node in tree["nodes"]:
        if node.get("type") == "ir.SourceName":
            node["data"] = ""
    return json.dumps(tree)


def load(folder: Path) -> Tensorized:
    """Reads what `save` wrote."""
    import numpy as np
    import tvm

    module = tvm.ir.load_json((folder / TIR).read_text())
    with np.load(folder / WEIGHTS) as npz:
        weights = {key: npz[key] for key in npz.files}
    functions = {var.name_hint: func for var, func in module.functions.items()}
    return Tensorized(TensorizePlan.load(folder), Graph.load(folder), functions, weights)


def _kernel_layer(
    view: LayerView,
    target: Target,
    kernels: Iterable[Kernel],
    config: TensorizeConfig,
    costs: CostTable,
    made: Tensorized,
    bound: ArenaBound | None,
) -> LayerPlan:
    choice = choose(view, target, kernels, config.rules, costs, bound)
    kernel, layer = choice.kernel, view.layer
    if bound is not None:
        bound.taken(view, kernel, choice.instead)
    packed = dict(kernel.pack_for(view, choice.params, target))
    lowering = kernel.lower(view, choice.params, target)
    _check_roles(lowering, packed, kernel.name, layer)
    return _plan(
        layer,
        kernel=kernel.name,
        params=choice.params.model_dump(mode="json"),
        why=choice.why,
        cost=choice.cost,
        cost_source=choice.cost_source,
        alternatives=choice.alternatives,
        steps=(_lowered(view, kernel, lowering, made),),
        sources=tuple(normpath(f"{kernel.folder.name}/{source}") for source in kernel.sources),
        headers=tuple(normpath(f"{kernel.folder.name}/{header}") for header in kernel.headers),
        may_overlay=kernel.overlays(view),
        constants=_keep_constants(layer, packed, made),
    )


def _lowered(view: LayerView, kernel: Kernel, lowering: Lowering, made: Tensorized) -> Step:
    """Schedules the layer's function and keeps it."""
    layer, name = view.layer, function_name(view.layer)
    made.functions[name] = _named(schedule(lowering, kernel.name, f"{layer.index} ({escape.name(layer.name)})"), name)
    return Step(function=name, roles=lowering.roles)


def _float_layer(layer: Layer, target: Target, module: Any, made: Tensorized) -> LayerPlan:
    from stages.tensorize.float_cost import float_cost
    from stages.tensorize.float_layer import lower_float

    op: Any = layer.op
    lowered = lower_float(module, op.function, function_name(layer))
    made.functions.update({name: _named(func, name) for name, func in lowered.functions.items()})
    return _plan(
        layer,
        kernel="tvm",
        why="float operator, lowered by TVM",
        cost=round(float_cost(lowered.functions.values(), target)),
        cost_source="estimated",
        steps=lowered.steps,
        constants=_keep_constants(layer, lowered.constants, made),
    )


def _plan(layer: Layer, **decided: Any) -> LayerPlan:
    return LayerPlan(index=layer.index, name=layer.name, op=layer.kind, **decided)


def _keep_constants(layer: Layer, packed: Mapping[str, np.ndarray], made: Tensorized) -> dict[str, str]:
    keys = {key: f"{layer.index:03d}.{key}" for key in packed}
    made.weights.update({keys[key]: array for key, array in packed.items()})
    return keys


def _named(func: Any, name: str) -> Any:
    return func.with_attr("global_symbol", name)


def _check_roles(lowering: Lowering, packed: Mapping[str, np.ndarray], kernel: str, layer: Layer) -> None:
    """A kernel's roles must name its buffers, and a constant's buffer must have the packed array's type and size."""
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
            found = f"{packed[key].dtype}[{packed[key].size}]"
            raise RuntimeError(f"{where}: constant {key} is {found}, its buffer {buffer.dtype}[{elements}]")


def _float_module(source: Path) -> Any:
    path = source / "float.json"
    if not path.is_file():
        return None
    import tvm

    return tvm.ir.load_json(path.read_text())
