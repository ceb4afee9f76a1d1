"""Runs the stage: graph in; plan.json, tir.json and weights.npz out. Its passes, each of what the one before it made:

simplified  Graph -> Graph         layers that need not be there go
channels    Graph -> Graph         channels that are constant or unused are left out
forms       Graph -> Graph         layers that can be computed in two forms, PADs among them
layouts     Graph -> Graph         in which layout each tensor lies, by what kernels then cost
signs       Graph -> Graph         which tensors are uint8, for an accelerator that reads unsigned bytes
choices     Graph -> Chosen        a kernel for each layer
placement   Chosen -> Chosen       tensors that are parts of others; copies that this saves are gone
own         Chosen -> Chosen       layers with the arithmetic of the engine that computes them, if a recipe asks for it
programs    Chosen -> Chosen       what lies in the accelerator's memory; a program for each layer that it computes
packing     Chosen -> Tensorized   constants, functions and the plan
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import no_progress
from stages.graph import Graph
from stages.kernels import registry
from stages.simplify.rewrites import Rewrite
from stages.simplify.simplify import simplified
from stages.tensorize.artifact import Tensorized, save
from stages.tensorize.channels import without_channels
from stages.tensorize.choices import choose_kernels
from stages.tensorize.costs import CostTable, least_per_product
from stages.tensorize.cycles import check_timed, cycle_tables
from stages.tensorize.forms import with_cheapest_forms
from stages.tensorize.found import found
from stages.tensorize.layouts import weighed, with_cheapest_layouts
from stages.tensorize.objective import with_objective
from stages.tensorize.own_arithmetic import with_own_arithmetic
from stages.tensorize.packing import pack_and_lower
from stages.tensorize.placement import place_parts
from stages.tensorize.programs import plan_programs
from stages.tensorize.rom import Rom
from stages.tensorize.setting import Setting
from stages.tensorize.settled import load as load_settled
from stages.tensorize.signs import with_cheapest_signs
from stages.tensorize.spare import within_ram
from stages.tensorize.tuning import tuned_table

if TYPE_CHECKING:
    from stages.base import Job
    from stages.kernels.kernel import Kernel
    from stages.targets.spec import Target
    from stages.tensorize import TensorizeConfig
    from stages.tensorize.choices import Chosen
    from stages.tensorize.plan import Found


def tensorize(job: Job[TensorizeConfig]) -> None:
    """Writes the stage's artifact into the job's folder."""
    setting, doubts = setting_of(job)
    settled = load_settled(job.inputs["measure"]) if "measure" in job.inputs else None
    setting = replace(setting, costs=replace(setting.costs, settled=settled or {}))
    graph = Graph.load(job.inputs["quantize"])
    placed, rewrites = decide(graph, setting)
    planned = plan_programs(with_own_arithmetic(placed, setting), setting)
    made = pack_and_lower(planned, setting, job.progress)
    kernels = registry.kernels_of(job.target)
    reach = least_per_product(job.files["costs"], kernels) if "costs" in job.files else {}
    fields = {
        "rewrites": tuple(rewrites) if job.config.simplify else None,
        "reach": reach,
        "unit": setting.unit,
        "tuning": None if setting.costs.tuned is None else _found(graph, placed, setting),
        "measured": None if settled is None else sum(map(len, settled.values())),
        "warnings": (*made.plan.warnings, *doubts),
    }
    made = replace(made, plan=made.plan.model_copy(update=fields))

    for warning in made.plan.warnings:
        job.log(f"warning: {warning}")
    save(made, job.out)


def setting_of(job: Job[TensorizeConfig]) -> tuple[Setting, list[str]]:
    """What the passes are told by a job's files and options, and sentences on what its costs are not.

    Raises StageError for a damaged table or tuning.
    """
    costs = CostTable.read(job.files["costs"]) if "costs" in job.files else CostTable()
    in_cycles, doubts = job.config.optimize_for == "cycles", list[str]()
    if in_cycles:
        check_timed(job.target)
        cycles, doubt = cycle_tables(job.files, job.target)
        costs, doubts = replace(costs, cycles=cycles), [doubt] if doubt else []
    if "tuning" in job.files:
        costs = replace(costs, tuned=tuned_table(job.files["tuning"], job.target, in_cycles=in_cycles))
    kernels = registry.kernels_of(job.target).values()
    return Setting.of(job.target, job.config, kernels, costs, _float_module(job.inputs["quantize"])), doubts


def reduced(graph: Graph, setting: Setting) -> tuple[Graph, list[Rewrite]]:
    """The first passes: the graph without work that changes nothing, and what that was."""
    if not setting.config.simplify:
        return graph, []
    graph, gone = simplified(graph)
    graph, left_out = without_channels(graph, setting)
    return graph, [*gone, *left_out]


def decide(graph: Graph, setting: Setting) -> tuple[Chosen, list[Rewrite]]:
    """The passes up to `placement`: what is computed of the graph of quantize, and with which kernels; what is not."""
    graph, rewrites = reduced(graph, setting)
    if setting.config.optimize_for != "rom" or setting.config.narrow_weights is not None:
        return _decided(graph, setting), rewrites
    rom = Rom(setting.target)  # one for all times, which remembers what is packed

    def whole() -> Chosen:
        return _decided(graph, replace(setting, rom=replace(rom, narrow=False)))

    def narrow(wide: frozenset[str]) -> Chosen:
        return _decided(graph, replace(setting, rom=replace(rom, wide=wide)))

    return within_ram(setting, whole, narrow), rewrites


def _decided(graph: Graph, setting: Setting) -> Chosen:
    setting = with_objective(graph, setting)
    formed = with_cheapest_forms(graph, setting)
    laid_out = with_cheapest_layouts(formed, setting)
    signed = laid_out if setting.offload is None else with_cheapest_signs(laid_out, setting.cost)
    return place_parts(choose_kernels(signed, setting), setting)


def tensorize_graph(
    graph: Graph,
    target: Target,
    config: TensorizeConfig,
    kernels: Iterable[Kernel],
    *,
    costs: CostTable | None = None,
    float_module: Any = None,
    progress: Callable[..., None] = no_progress,
) -> Tensorized:
    """The graph as it is, in its forms and with all its copies: for calibration and tests.

    Raises StageError for a layer that nothing can compute.
    """
    setting = Setting.of(target, config, kernels, costs, float_module)
    return pack_and_lower(plan_programs(choose_kernels(graph, setting), setting), setting, progress)


def _found(graph: Graph, chosen: Chosen, setting: Setting) -> Found:
    """What the tuning changed."""
    before, _ = decide(graph, replace(setting, costs=replace(setting.costs, tuned=None)))
    formed = with_cheapest_forms(reduced(graph, setting)[0], setting)
    return found(before, chosen, setting, weighed(formed, setting))


def _float_module(source: Path) -> Any:
    path = source / "float.json"
    if not path.is_file():
        return None
    import tvm

    return tvm.ir.load_json(path.read_text())
