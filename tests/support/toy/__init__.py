"""An accelerator for tests: int8 images in NHWC, exact results, computed by the core when it is waited for.

It reads and writes nothing before that, so that a program that forgets to wait, or reuses a buffer too early, is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from stages.backends.accelerators.accelerator import (
    Accelerator,
    Call,
    Calls,
    CoreWork,
    Parameters,
    Pointer,
    Strides,
    Table,
)
from stages.backends.accelerators.tiles import Granule, Span, Tile, extent, reads
from stages.backends.kernels.eight_bit import weight_rows
from stages.backends.kernels.folder import KernelFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.ir.graph import LayerView

FOLDER = KernelFolder(__file__, kernels=())


class ToyParameters(Parameters):
    """`macs_per_cycle` of the engine, `rows` and `channels` that tiles have multiples of; whether a start `waits`."""

    macs_per_cycle: int = Field(default=64, gt=0)
    waits: bool = False
    rows: int = 1
    channels: int = 4


class Toy(Accelerator[ToyParameters]):
    name = "toy"
    title = "an engine for tests"
    parameters = ToyParameters
    ops = frozenset({"conv2d", "depthwise_conv2d", "fully_connected"})
    sources = ("toy.c",)
    headers = ("toy.h",)
    init = "toy_init"
    wait = "toy_wait"
    queue: ClassVar[int] = 2

    @classmethod
    def requantizers(cls, given: ToyParameters) -> tuple[str, ...]:
        return ("engine",)

    def why_not(self, view: LayerView) -> str:
        op = view.op
        if any(tensor.dtype != "int8" for tensor in (*view.inputs, *view.outputs)) or op.weight_zero_point:
            return "it computes with int8"
        if getattr(op, "groups", 1) != 1 or getattr(op, "depth_multiplier", 1) != 1 or op.rounding == "steps":
            return "it has no groups and no multipliers of channels"
        return ""

    def start_waits(self, view: LayerView) -> bool:
        return self.given.waits

    def granule(self, view: LayerView) -> Granule:
        return Granule(self.given.rows, self.given.channels)

    def constants(self, view: LayerView, channels: Span) -> NDArray[np.uint8]:
        """Weights by channel, filled up to 4 bytes; then bias, multipliers and shifts, int32 each."""
        import numpy as np

        some = slice(channels.first, channels.end)
        weights = weight_rows(view, view.constant("weights"))
        count = len(weights)
        bias = view.constant("bias").reshape(-1) if view.has("bias") else np.zeros(count, np.int32)
        scales = [np.broadcast_to(view.constant(role).reshape(-1), (count,)) for role in ("multiplier", "shift")]
        data = weights[some].tobytes()
        data += bytes(-len(data) % 4) + b"".join(one[some].astype("<i4").tobytes() for one in (bias, *scales))
        return np.frombuffer(data, np.uint8)

    def constant_bytes(self, view: LayerView, channels: Span) -> int:
        depth = weight_rows(view, view.constant("weights")).shape[1]
        return -(-len(channels) * depth // 4) * 4 + 12 * len(channels)

    def cycles(self, view: LayerView, tile: Tile) -> int:
        depth = weight_rows(view, view.constant("weights")).shape[1]
        columns = extent(view.outputs[0]).columns
        return 40 + len(tile.rows) * columns * len(tile.channels) * depth // self.given.macs_per_cycle

    def core(self, view: LayerView, tile: Tile) -> CoreWork:
        return CoreWork(start=20)

    def scratch(self, view: LayerView, tile: Tile) -> Mapping[str, int]:
        return {"sums": 4 * len(tile.channels)}

    def calls(self, view: LayerView, tile: Tile, strides: Strides) -> Calls:
        op, x, out = view.op, extent(view.inputs[0]), extent(view.outputs[0])
        (part,) = reads(view, tile)
        numbers = [
            int(op.op == "depthwise_conv2d"), len(part.rows), x.columns, len(part.channels), strides.inputs[0],
            len(tile.rows), out.columns, len(tile.channels), strides.output,
            *getattr(op, "kernel", (1, 1)), *getattr(op, "stride", (1, 1)), *getattr(op, "dilation", (1, 1)),
            part.above, getattr(op, "padding", (0, 0))[1],
            op.input_zero_point, op.output_zero_point, op.act_min, op.act_max, int(op.rounding == "single"),
        ]  # fmt: skip
        if op.op == "fully_connected":  # rows of an image are one pixel of all their channels
            numbers[1:5] = [len(tile.rows), 1, op.depth, op.depth]
        pointers = (Pointer("input:0"), Pointer("constants"), Pointer("output:0"), Pointer("scratch:sums"))
        return Calls(Call("toy_start", (*pointers, Table(tuple(numbers), "int32_t"))))


ACCELERATOR = Toy
