"""Stage count: count kernels for a network's layers on the simulator, for tensorize."""

from stages.count.stage import STAGE, CountStage

__all__ = ["STAGE", "CountStage"]
