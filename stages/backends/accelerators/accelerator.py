"""The accelerator descriptor: layers, tiles, constants, costs and calls of an engine.

An engine reads and writes only one memory, L1. Other data moves there and back in tiles (`tiles.py`): some rows of the
output, all of its columns, some of its channels. `stages.lower.offload` decides which tensors lie in L1, tile sizes and
DMA transfers. It asks the descriptor, which knows nothing of other layers, DMA or addresses:

    must hold     why_not, granule, scratch, constant_bytes
    is better     cycles, core
    is emitted    constants, calls, and the C library in the accelerator's folder

An accelerator is a folder of `stages/backends/accelerators` (or of a plug-in). Its `__init__.py` has the class
ACCELERATOR.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from stages.backends.accelerators.tiles import Granule, Span, Tile
from stages.backends.kernels.folder import KernelFolder
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.layers import LayerOp
from stages.support.lazy import np, npt
from stages.support.options.strict_model import StrictModel


class Parameters(StrictModel):
    """Engine options of a target, under `accelerator: {parameters: …}`.

    Version, sizes, extensions.
    """


@dataclass(frozen=True)
class Strides:
    """Layout of a tile's tensors in L1, in bytes from run to run.

    A transfer moves a run in one piece. In NHWC a run is the channels of one pixel, in NCHW16c some rows of a block of
    channels.
    """

    inputs: tuple[int, ...]
    output: int


@dataclass(frozen=True)
class Pointer:
    """Argument: an address in L1, `offset` bytes from the start of the `role`.

    input:<number>   the first byte that the tile reads of an input, inside of the image
    output:0         the first byte that it writes
    constants        the `constants` for the tile's channels
    scratch:<name>   a buffer of `scratch`
    """

    role: str
    offset: int = 0


@dataclass(frozen=True)
class Table:
    """Argument: the address of constant numbers, an array of `ctype` in the emitted sources."""

    values: tuple[int, ...]
    ctype: str = "uint32_t"


Argument = int | Pointer | Table


@dataclass(frozen=True)
class Call:
    """Call of a function that the accelerator's headers declare."""

    function: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True)
class Calls:
    """A tile as calls. `start` returns an int for `Accelerator.wait`, without waiting.

    before  core work on the tile's inputs in L1, such as gathering windows
    after   core work on the engine's results, such as requantizing sums
    """

    start: Call
    before: tuple[Call, ...] = ()
    after: tuple[Call, ...] = ()


@dataclass(frozen=True)
class CoreWork:
    """Estimated instructions of the core for one tile: calls before, start, calls after."""

    start: float
    before: float = 0.0
    after: float = 0.0


@dataclass(frozen=True)
class OwnArithmetic:
    """A layer as the engine computes it if that is not exact: operator and changed constants.

    Of `reachable` sums (or pairs of inputs) `differing` have another result, by at most `largest`.
    """

    op: LayerOp
    constants: Mapping[str, Array]
    reachable: int
    differing: int
    largest: int


P = TypeVar("P", bound=Parameters)


class Accelerator(ABC, Generic[P]):
    """An engine with the parameters of a target.

    Everything about a layer comes in through its view.

    name          of the folder, as in recipes and reports
    title         the makers' name of the engine
    parameters    the model of its options in a target
    ops           the supported values of `Layer.op.op`
    requantizers  the values of `tensorize: {requantize: …}`, the default first
    sources       files of the folder, or below, to compile into firmware that uses it; they may depend on the core
    headers       headers that declare the functions of the sources
    init, wait    C functions: void init(void), called once; void wait(int), until the job with that number is done
    layouts       supported layouts of 4-D tensors
    queue         number of tiles that may be started and unfinished; the next start waits for one of them
    """

    name: ClassVar[str]
    title: ClassVar[str]
    parameters: ClassVar[type[Parameters]] = Parameters
    ops: ClassVar[frozenset[str]]
    sources: tuple[str, ...]
    headers: ClassVar[tuple[str, ...]]
    init: ClassVar[str]
    wait: ClassVar[str]
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)
    queue: ClassVar[int] = 2

    def __init__(self, given: P, requantize: str = "", features: frozenset[str] = frozenset()) -> None:
        """Store the target's parameters.

        `requantize` is one of `requantizers`, '' for the default. `features` are the core's (Core.features).
        Raise ValueError for another requantizer.
        """
        allowed = self.requantizers(given)
        if requantize and requantize not in allowed:
            raise ValueError(f"requantize: {requantize} is not supported by {self.name}; use {' or '.join(allowed)}")
        self.given = given
        self.requantize = requantize or allowed[0]
        self.features = features

    @classmethod
    @abstractmethod
    def requantizers(cls, given: P) -> tuple[str, ...]:
        """Return the units that may requantize sums, the default first: `core` (exact) or `engine`."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about its cycles, as sentences for reports."""
        return ()

    @property
    def folder(self) -> KernelFolder:
        """Folder with its C: FOLDER of its package."""
        package = sys.modules[type(self).__module__].__package__ or ""
        record: KernelFolder = vars(sys.modules[package])["FOLDER"]
        return record

    @abstractmethod
    def why_not(self, view: LayerView) -> str:
        """Return why the engine cannot compute the layer, '' if it can.

        Reasons are types, window, constants and layouts. Tensors have types of `reads` and `writes`.
        """

    def reads(self, view: LayerView) -> tuple[str, ...]:
        """Return the input types for a layer that it can compute: int8, uint8, or both."""
        return ("int8", "uint8")

    def writes(self, view: LayerView) -> tuple[str, ...]:
        """Return the output types that it supports."""
        return ("int8", "uint8")

    def reads_windows(self, view: LayerView) -> bool:
        """Return whether tiles of a convolution read gathered windows instead of the image.

        A window has the bytes of all taps and channels, (ky, kx, channel), with the zero point outside of the image.
        Windows begin at `input:0` in L1, `Strides.inputs` bytes apart. Transfers gather them.
        """
        return False

    def reads_pieces(self, view: LayerView) -> int:
        """Return the bytes of the pieces in which element-wise tiles interleave all inputs, else 0.

        They begin at `input:0` in L1: a piece of each input in turn. `Strides.inputs` is the distance between pieces of
        one input. Transfers interleave them. A tile reads whole pieces of each input.
        """
        return 0

    def own(self, view: LayerView) -> OwnArithmetic | None:
        """Return the layer with the engine's own arithmetic, None if the engine is exact."""
        return None

    def start_waits(self, view: LayerView) -> bool:
        """Return whether starting a tile blocks the core until the engine is nearly done."""
        return False

    def tiling_key(self, view: LayerView) -> Hashable:
        """Return everything except window and shapes that a layer's tiles depend on.

        Layers with equal keys get equal tiles, which are searched once. The default has numbers, types and the content
        of constants. Engines that depend on less should return less.
        """
        from hashlib import sha256

        content = sha256()
        for role in sorted(view.layer.constants):
            array = view.constant(role)
            content.update(f"{role} {array.dtype} {array.shape}".encode() + array.tobytes())
        types = tuple(tensor.model_dump_json(exclude={"name"}) for tensor in (*view.inputs, *view.outputs))
        return view.op, types, content.hexdigest()

    def granule(self, view: LayerView) -> Granule:
        """Return the granule: tile sizes are multiples of it."""
        from stages.backends.accelerators.tiles import Granule

        return Granule()

    @abstractmethod
    def constants(self, view: LayerView, channels: Span) -> npt.NDArray[np.uint8]:
        """Return the bytes, besides tensors, that tiles of these output channels need in L1.

        One block, aligned to 16 bytes.
        """

    @abstractmethod
    def constant_bytes(self, view: LayerView, channels: Span) -> int:
        """Return the size of `constants` in bytes."""

    def scratch(self, view: LayerView, tile: Tile) -> Mapping[str, int]:
        """Return the bytes of L1, by name, that a tile needs from its calls before to those after.

        For example 32-bit sums.
        """
        return {}

    @abstractmethod
    def cycles(self, view: LayerView, tile: Tile) -> int:
        """Return the engine's cycles for a tile.

        Tiles with equal numbers of rows and channels, written and read, and equal padding must have equal `cycles`,
        `core` and `scratch`.
        """

    @abstractmethod
    def core(self, view: LayerView, tile: Tile) -> CoreWork:
        """Return the core's instructions for a tile."""

    @abstractmethod
    def calls(self, view: LayerView, tile: Tile, strides: Strides) -> Calls:
        """Return the tile as calls of the C library."""
