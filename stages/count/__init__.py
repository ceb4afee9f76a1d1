"""Stage count: count kernels for a network's layers on the simulator, for tensorize."""

from stages.count.stage import STAGE

__all__ = ["STAGE"]
