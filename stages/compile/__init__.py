"""Stage compile: emitted C and the target's run-time code to an ELF file."""

from stages.compile.config import CompileConfig
from stages.compile.stage import STAGE, CompileStage

__all__ = ["STAGE", "CompileConfig", "CompileStage"]
