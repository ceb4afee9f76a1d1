"""The stage's passes, from the graph of quantize to the artifact:

simplified   Graph -> Graph         remove layers without effect
channels     Graph -> Graph         remove constant and unused channels
windows      Graph -> Graph         keep sliding windows as state
equivalents  Graph -> Graph         replace layers with cheaper equivalent ones; fold PADs
layouts      Graph -> Graph         choose the layout of each tensor by the cost of kernels
signedness   Graph -> Graph         choose int8 or uint8 tensors for an accelerator that reads unsigned bytes
choices      Graph -> Chosen        choose a kernel for each layer
placement    Chosen -> Chosen       place tensors inside others, which removes copies
rows         Chosen -> Chosen       run layers by rows, where that saves memory
smaller peak Chosen -> Chosen       give layers kernels that need less memory where the arena is largest
engine       Chosen -> Chosen       give layers the arithmetic of their engine, if the recipe asks for it
programs     Chosen -> Chosen       plan the accelerator's memory and a program for each of its layers
packing      Chosen -> Tensorized   pack constants, lower functions, write the plan
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from stages.backends.kernels import registry
from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.base import Job, no_progress
from stages.ir.graph import Graph
from stages.lower.simplify.rewrites import Rewrite
from stages.lower.simplify.simplify import simplified
from stages.lower.simplify.windows_as_state import with_windows_as_state
from stages.support.lazy import tvm
from stages.tensorize.arena_size import arena_bytes
from stages.tensorize.artifact import Tensorized, save
from stages.tensorize.channels import without_channels
from stages.tensorize.choices import Chosen, choose_kernels, with_estimates
from stages.tensorize.config import TensorizeConfig
from stages.tensorize.costs import Costs
from stages.tensorize.counts import load as load_counts
from stages.tensorize.equivalent_layers import with_cheapest_equivalents
from stages.tensorize.layouts import with_cheapest_layouts
from stages.tensorize.objective import check_timed, with_objective
from stages.tensorize.packed_weights import fit_to_ram
from stages.tensorize.packing import pack_and_lower
from stages.tensorize.pass_context import PassContext
from stages.tensorize.placement import place_parts
from stages.tensorize.plan import Distance
from stages.tensorize.programs import plan_programs
from stages.tensorize.rom import Rom
from stages.tensorize.rows import cost, with_rows
from stages.tensorize.rules import check_folders
from stages.tensorize.signedness import with_cheapest_signedness
from stages.tensorize.smaller_peak import with_smaller_peak


def tensorize(job: Job[TensorizeConfig]) -> None:
    """Write the stage's artifact to the job's folder."""
    costs = load_counts(job.inputs["count"]) if "count" in job.inputs else Costs()
    context = replace(context_of(job), costs=costs)
    graph = Graph.load(job.inputs["quantize"])
    placed, rewrites = decide(graph, context)
    planned = plan_programs(with_engine_arithmetic(with_estimates(placed, context), context), context)
    artifact = pack_and_lower(planned, context, job.progress)
    fields = {
        "rewrites": tuple(rewrites) if job.config.simplify else None,
        "unit": context.unit,
        "objective": job.config.optimize_for,
        **_requantizers(context),
        "counted": sum(map(len, costs.counts.values())),
        "warnings": (*artifact.plan.warnings, *_ignored(job.config)),
    }
    artifact = replace(artifact, plan=artifact.plan.model_copy(update=fields))

    for warning in artifact.plan.warnings:
        job.log(f"warning: {warning}")
    save(artifact, job.out)


def _requantizers(context: PassContext) -> dict[str, Any]:
    """Return the plan's fields about what requantizes an accelerator's sums."""
    if context.offload is None:
        return {}
    accelerator = context.offload.machine.accelerator
    others = (name for name in accelerator.requantizers(accelerator.given) if name != accelerator.requantize)
    return {"requantize": accelerator.requantize, "requantizers": tuple(others)}


def context_of(job: Job[TensorizeConfig]) -> PassContext:
    """Return the context of the passes for a job, with the kernels' estimates as costs.

    Raises StageError for a kernel folder that the core cannot run.
    """
    if job.config.optimize_for == "cycles":
        check_timed(job.target)
    check_folders(job.target)
    kernels = registry.kernels_of(job.target).values()
    return PassContext.of(job.target, job.config, kernels, float_module=_float_module(job.inputs["quantize"]))


def _ignored(config: TensorizeConfig) -> list[str]:
    """Return a warning for each option of an earlier version in the recipe."""
    names = [name for name in ("tuning", "measure") if name in config.model_fields_set]
    return [f"tensorize.{name} is ignored: kernels are counted in every run" for name in names]


def reduced(graph: Graph, context: PassContext) -> tuple[Graph, list[Rewrite]]:
    """Return the graph without superfluous work, and the rewrites that removed it."""
    if not context.config.simplify:
        return graph, []
    graph, rewrites = simplified(graph)
    graph, channel_rewrites = without_channels(graph, context)
    graph, window_rewrites = (graph, []) if context.offload is not None else with_windows_as_state(graph)
    return graph, [*rewrites, *channel_rewrites, *window_rewrites]


def decide(graph: Graph, context: PassContext) -> tuple[Chosen, list[Rewrite]]:
    """Run the passes up to `placement`.

    Return the chosen kernels and the rewrites of the graph. A limit that the arena keeps by itself changes no choice,
    but for the smallest ROM, which uses all of it.
    """
    graph, rewrites = reduced(graph, context)
    if context.config.optimize_for != "rom" or context.config.narrow_weights is not None:
        return _within_limit(graph, context), rewrites
    rom = Rom(context.target)  # shared by all attempts: it caches packed constants

    def unpacked() -> Chosen:
        return _decided(graph, replace(context, rom=replace(rom, narrow=False)))

    def packed(wide: frozenset[str]) -> Chosen:
        return _decided(graph, replace(context, rom=replace(rom, wide=wide)))

    return fit_to_ram(context, unpacked, packed), rewrites


def _decided(graph: Graph, context: PassContext) -> Chosen:
    context = with_objective(graph, context)
    formed = with_cheapest_equivalents(graph, context)
    laid_out = with_cheapest_layouts(formed, context)
    signed = laid_out if context.offload is None else with_cheapest_signedness(laid_out, context.cost)
    return place_parts(choose_kernels(signed, context), context)


def _within_limit(graph: Graph, context: PassContext) -> Chosen:
    limit = context.config.arena_limit
    if limit is not None and not context.counting:
        chosen = _with_less_memory(graph, context.unlimited)
        if arena_bytes(chosen, context) <= limit:
            return chosen
    return _with_less_memory(graph, context)


def _with_less_memory(graph: Graph, context: PassContext) -> Chosen:
    """Return the network, with layers by rows where that saves memory.

    Whole images with less scratch are the alternative where rows do not fit the arena's limit, or cost more.
    """
    limit, config = context.config.arena_limit, context.config
    if limit is None or not context.by_rows or config.ports_by_rows:
        return with_smaller_peak(with_rows(_decided(graph, context), context), context)
    by_rows = with_smaller_peak(with_rows(_decided(graph, context), context), context)
    fits = arena_bytes(by_rows, context) <= limit
    if fits and (by_rows.streaming is None or by_rows.streaming.share <= context.most_extra):
        return by_rows
    context = replace(context, config=config.model_copy(update={"streaming": False}))
    whole = _decided(graph, context)
    if arena_bytes(whole, context) > limit:
        return min(by_rows, whole, key=lambda chosen: arena_bytes(chosen, context))
    return by_rows if fits and cost(by_rows) <= cost(whole) else whole


def tensorize_graph(
    graph: Graph,
    target: Target,
    config: TensorizeConfig,
    kernels: Iterable[Kernel],
    *,
    costs: Costs | None = None,
    float_module: Any = None,
    progress: Callable[..., None] = no_progress,
) -> Tensorized:
    """Return the artifact of a graph without rewriting it, for counting and tests.

    Raises StageError for a layer that no kernel can compute.
    """
    context = PassContext.of(target, config, kernels, costs, float_module)
    return pack_and_lower(plan_programs(choose_kernels(graph, context), context), context, progress)


def _float_module(source: Path) -> Any:
    path = source / "float.json"
    if not path.is_file():
        return None
    return tvm.ir.load_json(path.read_text())


# The pass that gives layers the arithmetic of their engine where it differs from LiteRT's. This changes results, so
# only a recipe can ask for it (`requantize: engine`). The graph of tensorize then has the layers as they are computed.
# Verify checks the firmware against it, and reports its distance from LiteRT.


def with_engine_arithmetic(chosen: Chosen, context: PassContext) -> Chosen:
    """Return the choices with the engine's arithmetic and its distance from the model's."""
    kernel = context.offload
    if kernel is None:
        return chosen
    graph, choices, layers = chosen.graph, dict(chosen.choices), list(chosen.graph.layers)
    constants = dict(graph.constants)
    for index, choice in chosen.choices.items():
        arithmetic = kernel.machine.accelerator.own(graph.view(layers[index])) if choice.kernel is kernel else None
        if arithmetic is None:
            continue
        names = {role: f"{index:03d}/own/{role}" for role in arithmetic.constants}
        constants.update({names[role]: array for role, array in arithmetic.constants.items()})
        fields = {"op": arithmetic.op, "constants": {**layers[index].constants, **names}}
        layers[index] = layers[index].model_copy(update=fields)
        distance = Distance(reachable=arithmetic.reachable, differing=arithmetic.differing, largest=arithmetic.largest)
        choices[index] = replace(choice, distance=distance)
    return replace(chosen, graph=replace(graph, layers=layers, constants=constants), choices=choices)
