"""quantize: the imported operators as integer layers with all arithmetic constants."""

from stages.quantize.stage import STAGE

__all__ = ["STAGE"]
