"""ptq: post-training quantization, a float network and data to an integer TFLite file."""

from stages.ptq.stage import STAGE

__all__ = ["STAGE"]
