"""The arena: the one static block that holds every activation and all kernel scratch, planned at build time.

`liveness` turns a graph into buffers with lifetimes, `planner` gives each buffer its offset. Pure Python.
"""

from stages.arena.liveness import Liveness, liveness
from stages.arena.planner import Buffer, Plan, plan

__all__ = ["Buffer", "Liveness", "Plan", "liveness", "plan"]
