"""Stage quantize: turn the imported operators into integer layers with all their constants."""

from stages.quantize.stage import STAGE

__all__ = ["STAGE"]
