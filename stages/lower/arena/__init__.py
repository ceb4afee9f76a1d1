"""The arena: static memory for activations and kernel scratch, planned at build time.

liveness  a graph as buffers with lifetimes
traffic   bytes read and written of each buffer
planner   offsets of buffers in one block
regions   buffers over several memory regions, with a recipe's `rules`

Pure Python.
"""

from stages.lower.arena.liveness import Liveness, liveness
from stages.lower.arena.planner import Buffer, Plan, plan

__all__ = ["Buffer", "Liveness", "Plan", "liveness", "plan"]
