"""Run the stage: graph of quantize in, counts.json out."""

from dataclasses import replace

from stages.base import Job
from stages.ir.graph import Graph
from stages.tensorize.arena_size import arena_bytes
from stages.tensorize.build import context_of, decide
from stages.tensorize.config import TensorizeConfig
from stages.tensorize.costs import Costs
from stages.tensorize.counts import save
from stages.tensorize.pass_context import PassContext

_NEAR = 256  # bytes above the limit with which other kernels may fit


def run(job: Job[TensorizeConfig]) -> None:
    """Write the stage's artifact to the job's folder."""
    if job.target.counter == "none":
        job.log(f"target {job.target.name} cannot count instructions; kernels are chosen by estimates")
        save(Costs(), job.out)
        return
    graph, context = Graph.load(job.inputs["quantize"]), context_of(job)
    if exceeds_limit(graph, context):
        job.log("no kernel is counted: the arena exceeds its limit")
        save(Costs(), job.out)
        return
    from stages.count.counter import Counter
    from stages.count.search import counted_costs, needs_counts

    in_cycles = job.config.optimize_for == "cycles"
    counter = Counter(
        target=job.target if in_cycles else job.target.by_itself,
        cache=job.cache,
        tools={name: tool.version for name, tool in job.tools.items()},
        in_cycles=in_cycles,
        log=job.log,
        progress=job.progress,
    )
    job.progress("choosing which kernels to count")
    costs = counted_costs([(graph, context.unlimited)], counter, rom=counter.rom)
    if context.config.arena_limit is not None and needs_counts(graph, context, costs):
        costs = counted_costs([(graph, context)], counter, costs, rom=counter.rom)
    calls = sum(map(len, costs.counts.values()))
    job.log(f"{calls} kernels of {len(costs.counts)} layers are counted")
    save(costs, job.out)


def exceeds_limit(graph: Graph, context: PassContext) -> bool:
    """Return whether the arena exceeds its limit, with estimated costs and with lower bounds.

    Then nothing is counted, so that emit reports the error within seconds.
    """
    limit = context.config.arena_limit
    if limit is None:
        return False
    bounds = replace(context, costs=Costs(lower_bounds=True), counting=True)
    return all(arena_bytes(decide(graph, c)[0], c) > limit + _NEAR for c in (replace(context, costs=Costs()), bounds))
