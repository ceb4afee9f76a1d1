"""The program of an offloaded layer, as in plan.json: commands with symbolic addresses.

A place is an offset in something with a role: `input:0`, `output:0`, `constant:<key>` for constants in their memory,
`scratch:<name>` for a buffer in L1. Emit turns places into pointers.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Place(_Model):
    """An address `offset` bytes from the start of the role."""

    role: str
    offset: int = 0


class Numbers(_Model):
    """The address of an array of constant numbers of type `ctype`."""

    values: tuple[int, ...]
    ctype: str


Value = int | Place | Numbers


class Function(_Model):
    """A call of a C function."""

    name: str
    arguments: tuple[Value, ...] = ()


class Transfer(_Model):
    """Enqueue a copy of `runs` pieces of `bytes`, one stride apart on both sides.

    It is repeated `times` times, each one step further on both sides. These are separate transfers.
    """

    do: Literal["transfer"] = "transfer"
    to: Place
    source: Place
    bytes: int
    runs: int = 1
    to_stride: int = 0
    source_stride: int = 0
    times: int = 1
    to_step: int = 0
    source_step: int = 0


class Fence(_Model):
    """Wait until at most `left` transfers are pending. Transfers finish in order."""

    do: Literal["fence"] = "fence"
    left: int


class Start(_Model):
    """Start a tile on the engine. With `waits` the core waits until the tile is nearly done."""

    do: Literal["start"] = "start"
    tile: int
    call: Function
    cycles: int
    instructions: float
    waits: bool = False


class Await(_Model):
    """Wait until the engine has finished the tile."""

    do: Literal["await"] = "await"
    tile: int


class Work(_Model):
    """Work of the core."""

    do: Literal["work"] = "work"
    call: Function
    instructions: float


Command = Annotated[Transfer | Fence | Start | Await | Work, Field(discriminator="do")]


class Buffer(_Model):
    """Scratch of the layer in L1; with `ahead`, in use from its early transfers on."""

    name: str
    bytes: int
    ahead: bool = False


class Times(_Model):
    """Cycles of a layer from begin to end, and the busy cycles of each unit in it.

    `core` are the cycles in which the core works, `waiting` those in which it waits; both add up to `cycles`.
    """

    cycles: int
    engine: int
    dma: int
    core: int
    waiting: int


class Stretch(_Model):
    """An interval of cycles in which a unit works for a layer."""

    unit: Literal["core", "engine", "dma"]
    layer: int
    begin: int
    end: int


class Program(_Model):
    """An offloaded layer.

    ahead   early transfers, started before the layer `during` runs, which runs before this one
    tiles   number of tiles, of at most `rows` and `channels`
    wait    C function that waits for the engine; its argument is the result of a started tile
    """

    commands: tuple[Command, ...]
    buffers: tuple[Buffer, ...]
    ahead: tuple[Transfer, ...] = ()
    during: int | None = None
    tiles: int = 1
    rows: int
    channels: int
    wait: str


class Search(_Model):
    """Report of the search. `cycles` are of the offloaded layers, each by itself.

    status      of the integer program: `optimum`, proven; `gap`, proven to be within `gap` of it; `limit`, stopped
                after `node_limit` nodes; `none`, stopped without a solution
    bound       lower bound of the cycles, if the solver has one
    taken       `solver`: its solution; `greedy`: if the network is not slower with it, or if the solver's does not
                fit; `apart`: neither fits, so no tensor stays in L1 between layers
    memory      bytes that were planned with; less than L1 if gaps between buffers take the rest
    candidates  cycles of the whole network by name, for each that fits
    """

    status: Literal["optimum", "gap", "limit", "none"]
    taken: Literal["solver", "greedy", "apart"]
    cycles: int
    bound: int | None
    gap: float
    nodes: int
    node_limit: int
    memory: int
    candidates: dict[str, int]


class Attachment(_Model):
    """Data of the accelerator for the emitted sources, and the places of its buffers.

    region       the accelerator's memory
    resident     buffers of tensors that lie there; all others do not
    assumptions  sentences about the engine's cycles, for the report
    init         C function that prepares the engine; its argument is the address of the registers
    """

    region: str
    resident: tuple[str, ...]
    init: str
    base: int
    dma_base: int | None
    sources: tuple[str, ...]
    headers: tuple[str, ...]
    assumptions: tuple[str, ...] = ()
