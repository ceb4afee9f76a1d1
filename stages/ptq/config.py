"""Options of the ptq stage."""

from stages.base import StageConfig
from stages.quantize.options import QuantizeOptions


class PtqConfig(QuantizeOptions, StageConfig):
    __doc__ = QuantizeOptions.__doc__
