"""NE16's descriptor: tiles as jobs, constants as the engine reads them, and who requantizes its sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from stages.accelerators.accelerator import Accelerator, Call, Calls, CoreWork, Parameters, Pointer, Strides, Table
from stages.accelerators.tiles import Granule, Span, Tile, extent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.accelerators.ne16.job import Job
    from stages.accelerators.ne16.layers import Stored
    from stages.graph import LayerView

_ALIGNMENT = 16
# Instructions of the driver: for a job, for each block of stride 2, and of the core for each value (hwlib/).
_JOB, _BLOCK = 190, 75
_REQUANTIZED = 22


class Ne16Parameters(Parameters):
    """`extension: tflite` is an engine that rounds as TFLite does (extension.py)."""

    extension: Literal["none", "tflite"] = "none"


class Ne16(Accelerator[Ne16Parameters]):
    name = "ne16"
    title = "NE16"
    parameters = Ne16Parameters
    ops = frozenset({"conv2d", "depthwise_conv2d", "fully_connected"})
    sources = ("hwlib/ne16.c", "hwlib/sums.c")
    headers = ("hwlib/ne16.h", "hwlib/sums.h")
    init = "ne16_init"
    wait = "ne16_wait"

    def __init__(self, given: Ne16Parameters, requantize: str = "") -> None:
        super().__init__(given, requantize)
        self._found: dict[int, tuple[object, Stored]] = {}  # with the array, whose identity is the key

    @classmethod
    def requantizers(cls, given: Ne16Parameters) -> tuple[str, ...]:
        return ("engine", "core") if given.extension == "tflite" else ("core",)

    @property
    def _extended(self) -> bool:
        """Whether the engine requantizes as TFLite does."""
        return self.given.extension == "tflite" and self.requantize == "engine"

    def reads(self, view: LayerView) -> tuple[str, ...]:
        return ("int8", "uint8") if self._extended else ("uint8",)

    def why_not(self, view: LayerView) -> str:
        from stages.accelerators.ne16 import layers

        if reason := layers.why_not(view):
            return reason
        out = extent(view.outputs[0])
        if self._extended and layers.geometry(view).step == 2 and out.channels % 2:
            return f"stride 2 with {out.channels} channels: NE16 writes outputs at even distances"
        return ""

    def reads_windows(self, view: LayerView) -> bool:
        from stages.accelerators.ne16 import layers

        return layers.geometry(view).gathers

    def start_waits(self, view: LayerView) -> bool:
        from stages.accelerators.ne16 import layers

        return layers.geometry(view).step == 2

    def granule(self, view: LayerView) -> Granule:
        from stages.accelerators.ne16 import layers

        shape = layers.geometry(view)
        channels = 16 if shape.mode == "depthwise3x3" else 32
        return Granule(2 if shape.step == 2 else 3, channels)

    def constants(self, view: LayerView, channels: Span) -> NDArray[np.uint8]:
        """Packed weights; then of each channel bias and multiplier, int32, and shift, int8; the parameter block."""
        import numpy as np

        from stages.accelerators.ne16 import layers, packing
        from stages.accelerators.ne16.extension import Parameters as Block
        from stages.kernels.eight_bit import sums

        stored, made = self._stored(view), sums(view, 0)
        some = slice(channels.first, channels.end)
        packed = packing.pack(layers.weights_of(view, channels), layers.geometry(view).mode, stored.bits, stored.offset)
        parts = [
            packed,
            made.bias[some].astype("<i4").tobytes(),
            np.ascontiguousarray(made.multiplier[some]).astype("<i4").tobytes(),
            np.ascontiguousarray(made.shift[some]).astype(np.int8).tobytes(),
            Block(view.op.output_zero_point, view.op.act_min, view.op.act_max).block(),
        ]
        found = np.zeros(self.constant_bytes(view, channels), np.uint8)
        for offset, part in zip(self._offsets(view, channels), parts, strict=True):
            found[offset : offset + len(part)] = np.frombuffer(part, np.uint8)
        return found

    def constant_bytes(self, view: LayerView, channels: Span) -> int:
        return self._offsets(view, channels)[-1] + 12

    def scratch(self, view: LayerView, tile: Tile) -> Mapping[str, int]:
        pixels = len(tile.rows) * extent(view.outputs[0]).columns
        return {} if self._extended else {"sums": 4 * pixels * len(tile.channels)}

    def cycles(self, view: LayerView, tile: Tile) -> int:
        from stages.accelerators.ne16 import layers

        job = self._job(view, tile, len(tile.channels) + len(tile.channels) % 2)
        return max(layers.cycles(job), _BLOCK * _blocks(job))

    def core(self, view: LayerView, tile: Tile) -> CoreWork:
        pixels = len(tile.rows) * extent(view.outputs[0]).columns
        after = 0 if self._extended else 60 + pixels * (20 + len(tile.channels) * _REQUANTIZED)
        return CoreWork(start=_JOB, after=after)

    def calls(self, view: LayerView, tile: Tile, strides: Strides) -> Calls:
        from stages.accelerators.ne16.words import blocks, words

        job = self._job(view, tile, strides.output, strides.inputs[0])
        target = Pointer("output:0") if self._extended else Pointer("scratch:sums")
        pointers = (Pointer("input:0"), target, Pointer("constants"))
        if job.stride == 2:
            first, numbers = blocks(job)
            start = Call("ne16_start_blocks", (Table(first), Table(numbers), *pointers))
        else:
            start = Call("ne16_start", (Table(words(job)), *pointers))
        return Calls(start, (), () if self._extended else (self._requantize(view, tile, strides),))

    def _job(self, view: LayerView, tile: Tile, output_pixel: int, pixel: int = 0) -> Job:
        """Addresses count from where input, output and constants begin."""
        from stages.accelerators.ne16 import layers
        from stages.accelerators.ne16.job import Extension

        stored = self._stored(view)
        _, bias, multiplier, shift, block = self._offsets(view, tile.channels)
        more: dict[str, Any] = {"weight_bits": stored.bits, "weight_offset": stored.added}
        pixel = pixel or extent(view.inputs[0]).channels
        if not self._extended:
            return layers.job(view, tile, pixel, 4 * len(tile.channels), output_bits=32, **more)
        out = view.outputs[0].dtype
        signed = view.inputs[0].dtype == "int8"
        made = layers.job(
            view, tile, pixel, output_pixel, scale=multiplier, scale_bits=32, shifts=shift, bias=bias,
            signed=out == "int8", **more,
        )  # fmt: skip
        return replace(made, extension=Extension(block, view.op.rounding == "single", None, signed))

    def _stored(self, view: LayerView) -> Stored:
        """As `layers.stored`, found once for an array of weights."""
        from stages.accelerators.ne16 import layers

        weights = view.constant("weights")
        if id(weights) not in self._found:
            self._found[id(weights)] = weights, layers.stored(view)
        return self._found[id(weights)][1]

    def _offsets(self, view: LayerView, channels: Span) -> tuple[int, int, int, int, int]:
        """Of weights, biases, multipliers, shifts and the parameter block in the constants."""
        from stages.accelerators.ne16 import layers, packing

        shape, count = layers.geometry(view), len(channels)
        ki = count if shape.mode == "depthwise3x3" else shape.depth
        packed = packing.packed_bytes(shape.mode, ki, count, self._stored(view).bits)
        weights = -(-packed // _ALIGNMENT) * _ALIGNMENT
        shifts = weights + 8 * count
        return 0, weights, weights + 4 * count, shifts, shifts + -(-count // 4) * 4

    def _requantize(self, view: LayerView, tile: Tile, strides: Strides) -> Call:
        op = view.op
        _, bias, _, shift, block = self._offsets(view, tile.channels)
        pixels = len(tile.rows) * extent(view.outputs[0]).columns
        return Call(
            f"ne16_requantize_{op.rounding}",
            (
                Pointer("scratch:sums"),
                Pointer("output:0"),
                Pointer("constants", bias),
                Pointer("constants", shift),
                Pointer("constants", block),
                pixels,
                len(tile.channels),
                strides.output,
            ),
        )


def _blocks(job: Job) -> int:
    """Blocks of 2x2 outputs that the driver starts one by one."""
    return -(-job.h_out // 2) * -(-job.w_out // 2) if job.stride == 2 else 0
