"""Stage ptq: post-training quantization of a float network with data."""

from stages.ptq.stage import STAGE

__all__ = ["STAGE"]
