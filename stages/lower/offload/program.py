"""The program of an offloaded layer, as plan.json has it: commands with places instead of addresses.

A place is an offset in something that has a role in the layer: `input:0`, `output:0`, `constant:<key>` where constants
lie for good, `scratch:<name>` for a buffer in L1. Emit makes pointers of them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Place(_Model):
    """`offset` bytes from where the role begins."""

    role: str
    offset: int = 0


class Numbers(_Model):
    """The address of constant numbers in an array of `ctype`."""

    values: tuple[int, ...]
    ctype: str


Value = int | Place | Numbers


class Function(_Model):
    """A call of a C function."""

    name: str
    arguments: tuple[Value, ...] = ()


class Transfer(_Model):
    """Enqueues a copy of `runs` pieces of `bytes`, which begin a stride after each other on both sides.

    So many `times`, each a step further on both sides: these are transfers of their own.
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
    """Waits until at most `left` transfers are not done: they are done in order."""

    do: Literal["settle"] = "settle"
    left: int


class Start(_Model):
    """Starts tile `tile` on the engine; the core `waits` until that is nearly done, or goes on."""

    do: Literal["start"] = "start"
    tile: int
    call: Function
    cycles: int
    instructions: float
    waits: bool = False


class Await(_Model):
    """Waits until the engine is done with tile `tile`."""

    do: Literal["await"] = "await"
    tile: int


class Work(_Model):
    """Work of the core."""

    do: Literal["work"] = "work"
    call: Function
    instructions: float


Command = Annotated[Transfer | Fence | Start | Await | Work, Field(discriminator="do")]


class Buffer(_Model):
    """Scratch of the layer in L1. One with `ahead` is in use from the layer on in which transfers into it begin."""

    name: str
    bytes: int
    ahead: bool = False


class Times(_Model):
    """Cycles of a layer, as the timeline has them: from its begin to its end, and how long each unit works in it.

    `waiting` is what the core waits for the others, part of `cycles`; `core` is what it works.
    """

    cycles: int
    engine: int
    dma: int
    core: int
    waiting: int


class Stretch(_Model):
    """A unit at work for a layer, from one cycle of the inference to another."""

    unit: Literal["core", "engine", "dma"]
    layer: int
    begin: int
    end: int


class Program(_Model):
    """An offloaded layer.

    ahead   transfers that begin before the layer `during` runs, which runs before this one
    tiles   how many, of at most so many rows and channels
    wait    the C function that waits for the engine; it takes what a started tile returned
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
    """How tiles and places were found. `cycles` are of the offloaded layers, each by itself, which are minimized.

    status      of the integer program: `optimum`, proven; `gap`: proven to be within `gap` of it; `limit`: `node_limit`
                nodes of the search tree were done before; `none`: they were done before there was any solution
    bound       cycles that no solution takes less than, where the solver knows some
    taken       `solver`, its solution; `greedy`, one that takes the network no longer, or fits where the solver's does
                not; `apart`: neither fits, so that nothing stays in the engine's memory between layers
    memory      bytes that were planned with: less than there are where gaps between buffers took the others
    candidates  by name, the cycles of the whole network with each that fits
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
    """What the emitted sources need of the accelerator, and where its plan wants the network's memory.

    region    the accelerator's memory
    resident  buffers of tensors that lie there; all others do not
    assumptions  sentences about the engine's cycles, for the report
    init      the C function that prepares the engine, with the address of its registers
    """

    region: str
    resident: tuple[str, ...]
    init: str
    base: int
    dma_base: int | None
    sources: tuple[str, ...]
    headers: tuple[str, ...]
    assumptions: tuple[str, ...] = ()
