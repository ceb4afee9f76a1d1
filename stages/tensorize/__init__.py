"""Stage tensorize: choose kernels, pack constants, lower layers to TIR that calls kernels."""

from stages.tensorize.config import TensorizeConfig, TensorizeRule
from stages.tensorize.stage import STAGE, TensorizeStage

__all__ = ["STAGE", "TensorizeConfig", "TensorizeRule", "TensorizeStage"]
