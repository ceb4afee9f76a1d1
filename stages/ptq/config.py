"""Options of the ptq stage."""

from __future__ import annotations

from stages.base import StageConfig
from stages.quantize.options import QuantizeOptions


class PtqConfig(QuantizeOptions, StageConfig):
    __doc__ = QuantizeOptions.__doc__
