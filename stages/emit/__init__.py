"""Stage emit: scheduled TIR and packed weights to a folder of self-contained C."""

from stages.emit.config import EmitConfig
from stages.emit.stage import STAGE, EmitStage

__all__ = ["STAGE", "EmitConfig", "EmitStage"]
