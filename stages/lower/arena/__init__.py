"""The arena: static memory that holds every activation and all kernel scratch, planned at build time.

`liveness` turns a graph into buffers with lifetimes, `traffic` says how much each is used, `planner` gives each its
offset in one block, and `regions` divides them among several memories, with `rules` of the recipe. Pure Python.
"""

from stages.lower.arena.liveness import Liveness, liveness
from stages.lower.arena.planner import Buffer, Plan, plan

__all__ = ["Buffer", "Liveness", "Plan", "liveness", "plan"]
