"""The options of the compile stage."""

from typing import Annotated, Literal

from pydantic import AfterValidator
from pydantic.json_schema import SkipJsonSchema

from stages.base import StageConfig
from stages.compile.flags import check_flag


class CompileConfig(StageConfig):
    """Options of the compile stage.

    `optimize` is the optimization level; flags of a single kernel file come after it. `flags` are added for every file.
    Allowed are flags that tune code. Flags that change the target, the ABI, the link or float results are errors
    (stages/compile/flags.py). `host` reads inputs and writes outputs: the simulator, or a `debugger` for a board, which
    `run_on=` on the command line sets. `streaming`: the recipe's `memory.streaming`.
    """

    kind: Literal["compile"] = "compile"
    optimize: Literal["-O1", "-O2", "-O3", "-Os"] = "-O2"
    host: Literal["simulator", "debugger"] = "simulator"
    streaming: SkipJsonSchema[Literal["auto", False] | None] = None
    flags: tuple[Annotated[str, AfterValidator(check_flag)], ...] = ()
