"""verify: what the firmware computed, held against LiteRT's reference kernels."""

from stages.verify.stage import STAGE

__all__ = ["STAGE"]
