"""The accelerator descriptor: supported layers, tiles, constants, costs and calls of an engine.

An engine reads and writes one memory of its own, L1. Other data moves there and back in tiles (`tiles.py`): some rows
of the output, all of its columns, some of its channels. `stages.lower.offload` decides which tensors lie in L1, the
size of tiles and the DMA transfers. It asks the descriptor, which knows nothing of other layers, of DMA or of
addresses:

    must hold     why_not, granule, scratch, constant_bytes
    is better     cycles, core
    is emitted    constants, calls, and the C library in the accelerator's folder

An accelerator is a folder of `stages/backends/accelerators` (or of a plug-in) whose `__init__.py` has ACCELERATOR, a
class.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from stages.support.options.strict_model import StrictModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.backends.accelerators.tiles import Granule, Span, Tile
    from stages.backends.kernels.folder import KernelFolder
    from stages.ir.graph import LayerView
    from stages.ir.operators.layer import LayerOp


class Parameters(StrictModel):
    """Engine options of a target, under `accelerator: {parameters: …}`.

    Version, sizes, extensions.
    """


@dataclass(frozen=True)
class Strides:
    """Layout of a tile's tensors in L1, in bytes from run to run.

    A run is what one transfer moves in one piece.

    In NHWC a run is the channels of one pixel, in NCHW16c some rows of a block of channels.
    """

    inputs: tuple[int, ...]
    output: int


@dataclass(frozen=True)
class Pointer:
    """Argument: an address in L1, `offset` bytes from the start of the `role`.

    input:<number>   the first byte that the tile reads of an input, inside of the image
    output:0         the first byte that it writes
    constants        what `constants` made for the tile's channels
    scratch:<name>   of `scratch`
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
    """A tile as calls.

    `start` returns an int for `Accelerator.wait` and does not wait for the engine.

    before  work of the core on what the tile reads, when that is in L1, such as gathering windows
    after   work of the core on what the engine has left, such as requantizing sums
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

    Of `reachable` sums (or pairs of inputs) `differing` have another result, by `largest` at most.
    """

    op: LayerOp
    constants: Mapping[str, NDArray[Any]]
    reachable: int
    differing: int
    largest: int


P = TypeVar("P", bound=Parameters)


class Accelerator(ABC, Generic[P]):
    """An engine with the parameters of a target. Everything about a layer comes in through its view.

    name          the folder's, which recipes and reports write
    title         what its makers call it
    parameters    the model of what a target may say of it
    ops           the values of `Layer.op.op` it is for
    requantizers  what `tensorize: {requantize: …}` may say, the default first
    sources       files of the folder, or below, that firmware using it is compiled with; they may depend on the core
    headers       those that declare what the sources define
    init, wait    C functions: void init(void), once; void wait(int), until what returned the number is done
    layouts       of 4-D tensors that it reads and writes
    queue         tiles that can be started and not yet done; one is waited for before so many more are started
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

        `requantize` is one of `requantizers`, '' for the default. `features` are those of the core (Core.features).

        Raises ValueError for another requantizer.
        """
        allowed = self.requantizers(given)
        if requantize and requantize not in allowed:
            raise ValueError(f"{self.name} requantizes as {' or '.join(allowed)}, not as {requantize}")
        self.given = given
        self.requantize = requantize or allowed[0]
        self.features = features

    @classmethod
    @abstractmethod
    def requantizers(cls, given: P) -> tuple[str, ...]:
        """Return who may requantize sums, the default first: `core` (exact) or `engine`."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about its cycles, as sentences for reports."""
        return ()

    @property
    def folder(self) -> KernelFolder:
        """Folder with its C: FOLDER of its package."""
        package = sys.modules[type(self).__module__].__package__ or ""
        found: KernelFolder = vars(sys.modules[package])["FOLDER"]
        return found

    @abstractmethod
    def why_not(self, view: LayerView) -> str:
        """Return why the engine cannot compute the layer, '' if it can.

        Checks types, window, constants and layouts.

        Tensors have types that `reads` and `writes` name.
        """

    def reads(self, view: LayerView) -> tuple[str, ...]:
        """Return the input types for a layer that it can compute: int8, uint8, or both."""
        return ("int8", "uint8")

    def writes(self, view: LayerView) -> tuple[str, ...]:
        """Return the output types that it supports."""
        return ("int8", "uint8")

    def reads_windows(self, view: LayerView) -> bool:
        """Return whether tiles of a convolution read gathered windows instead of the image.

        A window has the bytes of all taps and channels, (ky, kx, channel); beyond the image that of the zero point.
        They are in L1 where `input:0` begins, `Strides.inputs` is from window to window; transfers gather them.
        """
        return False

    def reads_pieces(self, view: LayerView) -> int:
        """Return the bytes of the pieces in which element-wise tiles interleave all inputs, else 0.

        They are in L1 where `input:0` begins: a piece of each input in turn. `Strides.inputs` is from one piece of an
        input to its next; transfers lay them so. What a tile reads of an input is whole pieces.
        """
        return 0

    def own(self, view: LayerView) -> OwnArithmetic | None:
        """Return the layer with the engine's own arithmetic, None if the engine is exact."""
        return None

    def start_waits(self, view: LayerView) -> bool:
        """Return whether starting a tile blocks the core until the engine is nearly done."""
        return False

    def tiling_key(self, view: LayerView) -> Hashable:
        """Return what a layer's tiles depend on besides window and shapes.

        That covers granule, bytes, cycles, scratch and core.

        Layers that agree in this are cut alike, which is then sought once. By default numbers, types and the content of
        constants; an engine that looks at less of these should say so.
        """
        from hashlib import sha256

        content = sha256()
        for role in sorted(view.layer.constants):
            array = view.constant(role)
            content.update(f"{role} {array.dtype} {array.shape}".encode() + array.tobytes())
        types = tuple(tensor.model_dump_json(exclude={"name"}) for tensor in (*view.inputs, *view.outputs))
        return view.op, types, content.hexdigest()

    def granule(self, view: LayerView) -> Granule:
        """Return the numbers of which tile sizes are multiples."""
        from stages.backends.accelerators.tiles import Granule

        return Granule()

    @abstractmethod
    def constants(self, view: LayerView, channels: Span) -> NDArray[np.uint8]:
        """Return all that tiles of these output channels need in L1 besides tensors.

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

        This, `core` and `scratch` are the same for tiles that are alike: as many rows and channels, which read as many,
        with as much padding.
        """

    @abstractmethod
    def core(self, view: LayerView, tile: Tile) -> CoreWork:
        """Return the core's instructions for a tile."""

    @abstractmethod
    def calls(self, view: LayerView, tile: Tile, strides: Strides) -> Calls:
        """Return the tile as calls of the C library."""
