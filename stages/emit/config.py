"""Options of the emit stage."""

from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from stages.backends.targets.memory import Size
from stages.backends.targets.memory_rules import MemoryRule
from stages.base import StageConfig
from stages.support.options.names import Identifier


class EmitConfig(StageConfig):
    """Options of the emit stage.

    `prefix` is the prefix of all C names, in upper case for macros: `kws` gives kws_run and KWS_INPUT0_BYTES. So
    several models fit into one program. They share the kernels.
    `weights`: `incbin` writes weights.bin and a short weights.S, which needs no compile time; `c` writes an array, for
    assemblers without `.incbin`. With `caller` the application passes the address of a blob to `model_init`, so that
    new weights need no new code (stages.emit.blob).
    `alignment` of each tensor in the arena and of each constant, in bytes.
    `arena`: `static` is part of the emitted sources; `caller` is passed by the caller (`model_init(arena, bytes)`), so
    that models can share it. If several memory regions are used, there is one block, or two parameters, for each.
    `input`: `image` has memory for the whole input in the arena; with `rows` the caller passes any number of
    rows at a time (`model_push_rows`), and the arena holds only the rows that layers still need.
    `output`: `image` has memory for the whole output; with `rows` the application's function (`model_on_rows`) receives
    the rows of the network's only output as they are made.
    An arena larger than `arena_limit` bytes is an error; the recipe's `memory.arena_limit` sets it. `streaming`
    (`memory.streaming`): whether layers may run by rows, so that it may be smaller than whole tensors. `memory_rules`,
    which the recipe's `memory.rules` sets, select the memory regions of buffers and constants.
    `class_names` of the first output's elements, which `report.classes` sets, become an array in model.h.
    """

    prefix: Identifier = "model"
    weights: Literal["incbin", "c", "caller"] = "incbin"
    # With `caller`, the first blob is an array: exports for assemblers without `.incbin` set it.
    blob_array: SkipJsonSchema[bool] = False
    arena: Literal["static", "caller"] = "static"
    input: Literal["image", "rows"] = "image"
    output: Literal["image", "rows"] = "image"
    alignment: Literal[8, 16, 32, 64] = Field(default=16)
    arena_limit: Size | None = None
    streaming: Literal["auto", False] | None = None
    memory_rules: tuple[MemoryRule, ...] | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def may_stream(self) -> bool:
        """Whether layers may run by rows, if the arena's limit asks for it."""
        return self.streaming is not False

    @property
    def is_blob(self) -> bool:
        """Whether the caller passes the weights."""
        return self.weights == "caller"

    @property
    def is_array(self) -> bool:
        """Whether the sources have the weights as a C array."""
        return self.weights == "c" or (self.is_blob and self.blob_array)

    @property
    def layer_prefix(self) -> str:
        """Prefix of the layers' functions; '' for the default prefix."""
        return "" if self.prefix == type(self).model_fields["prefix"].default else f"{self.prefix}_"
