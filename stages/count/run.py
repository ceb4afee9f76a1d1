"""Run the stage: graph of quantize in, counts.json out."""

from stages.base import Job
from stages.ir.graph import Graph
from stages.tensorize.build import context_of
from stages.tensorize.config import TensorizeConfig
from stages.tensorize.costs import Costs
from stages.tensorize.counts import save


def run(job: Job[TensorizeConfig]) -> None:
    """Write the stage's artifact to the job's folder."""
    if job.target.counter == "none":
        job.log(f"target {job.target.name} cannot count instructions; kernels are chosen by estimates")
        save(Costs(), job.out)
        return
    from stages.count.counter import Counter
    from stages.count.search import counted_costs

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
    costs = counted_costs([(Graph.load(job.inputs["quantize"]), context_of(job))], counter, rom=counter.rom)
    calls = sum(map(len, costs.counts.values()))
    job.log(f"{calls} kernels of {len(costs.counts)} layers are counted")
    save(costs, job.out)
