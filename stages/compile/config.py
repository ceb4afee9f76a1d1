"""The options of the compile stage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from stages.base import StageConfig
from stages.compile.flags import check_flag


class CompileConfig(StageConfig):
    """Options of the compile stage.

    `optimize` is the level for the model's own files (flags of a single kernel file come after it); `flags` are added
    to every file's: such as tune code, and none that changes the target, the ABI, the link or the results of floats
    (stages/compile/flags.py). `host` is who reads inputs and takes outputs: the simulator, or on a board a `debugger`,
    which `run_on=` of the command line sets.
    """

    kind: Literal["compile"] = "compile"
    optimize: Literal["-O1", "-O2", "-O3", "-Os"] = "-O2"
    host: Literal["simulator", "debugger"] = "simulator"
    flags: tuple[Annotated[str, AfterValidator(check_flag)], ...] = ()
