"""NE16 as an accelerator: supported layers, tiles, and calls in the emitted sources."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stages.backends.accelerators.accelerator import (
    Accelerator,
    Call,
    Calls,
    CoreWork,
    OwnArithmetic,
    Parameters,
    Pointer,
    Strides,
    Table,
)
from stages.backends.accelerators.ne16.job import Extension, Job
from stages.backends.accelerators.ne16.mapping import (
    PAIR_CHANNELS,
    Gather,
    by_transfers,
    gather_instructions,
    mapping,
    pair_rows,
    side_by_side,
    why_not_mapped,
)
from stages.backends.accelerators.ne16.words import blocks, words
from stages.backends.accelerators.tiles import Granule, Span, Tile, extent, reads
from stages.ir.graph import LayerView
from stages.ir.layers import ROUNDINGS
from stages.ir.operators.arithmetic import Add
from stages.ir.operators.products import DepthwiseConv2D
from stages.support.lazy import np, npt

if TYPE_CHECKING:
    from stages.backends.accelerators.floor_rounding import ScaleConstants, Sum
    from stages.backends.accelerators.ne16.arithmetic import Block, How
    from stages.backends.accelerators.ne16.weights import WeightCache

_WEIGHTED = frozenset({"conv2d", "depthwise_conv2d", "fully_connected"})
_LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
_DEPTHWISE_CHANNELS = 16
# Instructions of the core, measured with the driver in hwlib/.
_START, _START_BLOCKS, _BLOCK = 105, 170, 26
_P = "rvp"
_CALL = 40
_CLOSED_FORM = (
    "NE16's jobs take the cycles of MATCH's closed form for GAP9: incomplete rows, columns and input channels cost as "
    "much as complete ones; a job begins one cycle after its trigger, or after the end of the previous job"
)
_REQUANTIZE, _REQUANTIZE_RVP, _CHANNELS_RVP = 34.0, 6.9, 6.0


class Ne16Parameters(Parameters):
    """Options of NE16 in a target.

    `extension`: `tflite` adds a requantizer that rounds as TFLite does, int8 inputs, and residual additions.
    """

    extension: Literal["none", "tflite"] = "none"


class Ne16(Accelerator[Ne16Parameters]):
    name = "ne16"
    title = "NE16 (GAP9, PULP)"
    parameters = Ne16Parameters
    ops = _WEIGHTED | {"add", "sub"}
    sources: tuple[str, ...] = ("hwlib/ne16.c", "hwlib/ne16_core.c")
    headers = ("hwlib/ne16.h", "hwlib/ne16_core.h")
    init = "ne16_init"
    wait = "ne16_wait"
    queue: ClassVar[int] = 2

    def __init__(self, given: Ne16Parameters, requantize: str = "", features: frozenset[str] = frozenset()) -> None:
        super().__init__(given, requantize, features)
        self._known: WeightCache | None = None
        if _P in features:
            self.sources = (*type(self).sources, "hwlib/ne16_requantize_rvp.c")

    @classmethod
    def requantizers(cls, given: Ne16Parameters) -> tuple[str, ...]:
        return ("engine", "core") if given.extension == "tflite" else ("core", "engine")

    @property
    def assumptions(self) -> tuple[str, ...]:
        from stages.backends.accelerators.ne16.extension import BLOCK_CYCLES, ROUNDING_CYCLES, residual_cycles

        assumed = (
            "no silicon has the extension, so its cycles are assumed: "
            f"{BLOCK_CYCLES} more for a job, {ROUNDING_CYCLES} more for 3x3 outputs of up to 32 channels, "
            f"and {residual_cycles(32)} more for 3x3 outputs of 32 channels with a residual"
        )
        return (_CLOSED_FORM, assumed) if self._extended else (_CLOSED_FORM,)

    @property
    def _extended(self) -> bool:
        """Whether the engine requantizes as TFLite does."""
        return self.given.extension == "tflite" and self.requantize == "engine"

    def why_not(self, view: LayerView) -> str:
        return self._why_not_rounded(view) or why_not_mapped(view)

    def reads(self, view: LayerView) -> tuple[str, ...]:
        return ("int8", "uint8") if self._extended else ("uint8",)

    def own(self, view: LayerView) -> OwnArithmetic | None:
        if self._extended or self.requantize != "engine":
            return None
        from stages.backends.accelerators.ne16.arithmetic import with_floor

        nearest = self._nearest(view)
        if isinstance(nearest, str):
            raise RuntimeError(f"internal error: layer {view.layer.name} has no constants: {nearest}")
        op, constants = with_floor(view, nearest)
        counts = (int(_total(nearest.reachable)), int(_total(nearest.differing)), int(_largest(nearest.largest)))
        return OwnArithmetic(op, constants, *counts)

    def reads_windows(self, view: LayerView) -> bool:
        return by_transfers(view)

    def reads_pieces(self, view: LayerView) -> int:
        return PAIR_CHANNELS if self._is_side_by_side(view) else 0

    def start_waits(self, view: LayerView) -> bool:
        first_tile = Tile(Span(0, 1), Span(0, 1))
        return mapping(view, first_tile, _compact(view, first_tile)).stride == 2

    def tiling_key(self, view: LayerView) -> Hashable:
        return self._stored(view)[0], self._is_fast(view)

    def granule(self, view: LayerView) -> Granule:
        channels = extent(view.outputs[0]).channels
        if isinstance(view.op, Add):
            return Granule(pair_rows(view), channels)
        # Depthwise weights lie in sixteens of channels. Blocks of 2x2 outputs begin at even distances.
        return Granule(1, _DEPTHWISE_CHANNELS if isinstance(view.op, DepthwiseConv2D) else min(32, channels))

    def constants(self, view: LayerView, channels: Span) -> npt.NDArray[np.uint8]:
        from stages.backends.accelerators.ne16.arithmetic import contents, pair_contents

        if isinstance(view.op, Add):
            return pair_contents(view, self._how(view))
        rounders = self._weight_cache.rounders(view) if self._is_fast(view) else None
        return contents(view, self._how(view), self._mode(view), channels, self._weight_cache.weights(view), rounders)

    def constant_bytes(self, view: LayerView, channels: Span) -> int:
        return self._block(view, Tile(Span(0, 1), channels)).bytes

    def scratch(self, view: LayerView, tile: Tile) -> Mapping[str, int]:
        sizes = {}
        tile_mapping = mapping(view, tile, _compact(view, tile))
        if tile_mapping.gather is not None:
            sizes["windows"] = tile_mapping.gather.bytes
        if self._how(view) == "core":
            sizes["sums"] = 4 * len(tile.rows) * extent(view.outputs[0]).columns * len(tile.channels)
        return sizes

    def cycles(self, view: LayerView, tile: Tile) -> int:
        job = self._job(view, tile, _compact(view, tile))
        return max(_cycles(job), _BLOCK * _blocks(job))

    def core(self, view: LayerView, tile: Tile) -> CoreWork:
        job = self._job(view, tile, _compact(view, tile))
        # Of blocks of stride 2 the first; the engine works while the core starts the others.
        start = float(_START if job.stride == 1 else _START_BLOCKS + _BLOCK)
        gather = mapping(view, tile, _compact(view, tile)).gather
        before = 0.0
        if gather is not None:
            before = _CALL + gather_instructions(gather)
        after = 0.0
        if self._how(view) == "core":
            values = len(tile.rows) * extent(view.outputs[0]).columns * len(tile.channels)
            fast = self._is_fast(view) and len(tile.channels) % 4 == 0
            per_channel = _CHANNELS_RVP * len(tile.channels) if fast else 0
            after = _CALL + per_channel + (_REQUANTIZE_RVP if fast else _REQUANTIZE) * values
        return CoreWork(start, before, after)

    def calls(self, view: LayerView, tile: Tile, strides: Strides) -> Calls:
        job = self._job(view, tile, strides)
        before, source = self._before(view, tile, strides)
        sums = self._how(view) == "core"
        target = Pointer("scratch:sums" if sums else "output:0")
        pointers = [source, target, Pointer("constants")]
        function = "ne16_start"
        tables = [Table(words(job))] if job.is_whole else [Table(numbers) for numbers in blocks(job)]
        if not job.is_whole:
            function += "_blocks"
        if job.extension is not None and job.extension.residual is not None:
            function += "_residual"
            pointers.append(Pointer("input:1"))
        after = (self._requantize(view, tile, strides),) if sums else ()
        return Calls(Call(function, (*tables, *pointers)), before, after)

    def _why_not_rounded(self, view: LayerView) -> str:
        op = view.op
        if isinstance(op, Add):
            if self.requantize == "core":
                return "no gain: the core adds as fast as it requantizes"
            if self._extended:
                return self._why_not_residual(view)
        elif not view.has("weights"):
            return "the weights are not constant"
        exact = self.requantize == "core" or self._extended
        if exact and not ROUNDINGS[op.rounding].is_multiplied:
            return f"rounding {op.rounding}; neither double nor single"
        if not exact:
            out = view.outputs[0]
            if (op.act_min, op.act_max) != _LIMITS.get(out.dtype):
                return f"a clamp to {op.act_min} to {op.act_max}; the engine only saturates to {out.dtype}"
            if op.rounding != "floor":
                nearest = self._nearest(view)
                return nearest if isinstance(nearest, str) else ""
        return ""

    def _why_not_residual(self, view: LayerView) -> str:
        op = view.op
        if op.sign < 0:
            return "SUB; the extension only adds"
        if not op.rounds_twice or op.left_shift != 20:
            return "an ADD other than TFLite's with left shift 20 and double rounding"
        types = {tensor.dtype for tensor in (*view.inputs, *view.outputs)}
        return "" if len(types) == 1 else "int8 and uint8 tensors in one layer"

    def _nearest(self, view: LayerView) -> ScaleConstants | Sum | str:
        """Return the constants of the engine's own arithmetic, or why it has none."""
        from stages.backends.accelerators.ne16.arithmetic import LIMITS

        find = self._weight_cache.nearest if view.op.op in _WEIGHTED else self._weight_cache.sum
        return find(view, LIMITS)

    def _is_fast(self, view: LayerView) -> bool:
        """Return whether the core requantizes with its P extension."""
        return self._how(view) == "core" and _P in self.features and self._weight_cache.rounders(view) is not None

    @property
    def _weight_cache(self) -> WeightCache:
        """Made when it is needed: numpy, which reading targets does without."""
        if self._known is None:
            from stages.backends.accelerators.ne16.weights import WeightCache

            self._known = WeightCache()
        return self._known

    def _stored(self, view: LayerView) -> tuple[int, int]:
        """Return bits and offset of stored weights."""
        from stages.backends.accelerators.ne16.arithmetic import pair_bits

        if isinstance(view.op, Add):
            return pair_bits(view)
        weights = self._weight_cache.weights(view)
        return weights.bits, weights.offset

    def _how(self, view: LayerView) -> How:
        if self._extended:
            return "tflite"
        return "core" if self.requantize == "core" else "floor"

    def _is_side_by_side(self, view: LayerView) -> bool:
        return isinstance(view.op, Add) and not self._extended

    def _mode(self, view: LayerView) -> Any:
        first_tile = Tile(Span(0, 1), Span(0, 1))
        return mapping(view, first_tile, _compact(view, first_tile)).mode

    def _block(self, view: LayerView, tile: Tile) -> Block:
        from stages.backends.accelerators.ne16.arithmetic import block

        tile_mapping = mapping(view, tile, _compact(view, tile))
        if self._is_side_by_side(view):
            tile_mapping = side_by_side(tile_mapping)
        pair = isinstance(view.op, Add)
        bits, _ = self._stored(view)
        residual = pair and self._extended
        return block(self._how(view), tile_mapping.mode, tile_mapping.ki, tile_mapping.ko, bits, residual=residual)

    def _job(self, view: LayerView, tile: Tile, strides: Strides) -> Job:
        """Return the tile's job. Its addresses are offsets from the start of tensors and constants."""
        from stages.backends.accelerators.ne16.arithmetic import SCALE_BITS

        how, block = self._how(view), self._block(view, tile)
        if how == "core":  # sums lie without anything between them
            strides = Strides(strides.inputs, len(tile.channels))
        tile_mapping = mapping(view, tile, strides)
        if self._is_side_by_side(view):
            tile_mapping = side_by_side(tile_mapping)
        image, pair = tile_mapping.image, isinstance(view.op, Add)
        bits, offset = self._stored(view)
        width = 4 if how == "core" else 1
        job = Job(
            mode=tile_mapping.mode,
            h_out=image.rows,
            w_out=image.columns,
            ki=tile_mapping.ki,
            ko=tile_mapping.ko,
            input=0,
            input_pixel=image.input_pixel,
            input_row=image.input_row,
            output=0,
            output_pixel=image.output_pixel * width,
            output_row=image.output_row * width,
            weights=block.weights,
            stride=tile_mapping.stride,
            padding=tile_mapping.padding,
            pad_value=0 if pair else view.op.input_zero_point,
            weight_bits=bits,
            weight_offset=offset,
            output_bits=8 * width,
            signed=how == "core" or view.outputs[0].dtype == "int8",
        )
        if how == "core":  # sums with their addend: scaled by 1, not shifted
            return replace(job, scale=block.scale, scale_bits=SCALE_BITS[how], bias=block.bias)
        extension = None
        if how == "tflite":
            extension = Extension(
                parameters=block.parameters,
                rounds_once=view.op.rounds_once,
                residual=0 if pair else None,
                signed_input=view.inputs[0].dtype == "int8",
            )
        return replace(
            job, scale=block.scale, scale_bits=SCALE_BITS[how], shifts=block.shift, bias=block.bias, extension=extension
        )

    def _before(self, view: LayerView, tile: Tile, strides: Strides) -> tuple[tuple[Call, ...], Pointer]:
        """Return the core's calls before the job, and the address of the engine's input."""
        gather, windows = mapping(view, tile, strides).gather, Pointer("scratch:windows")
        if gather is None:
            return (), Pointer("input:0")
        numbers = Table(_gathered(view, tile, strides, gather), "int32_t")
        return (Call("ne16_gather", (Pointer("input:0"), windows, numbers)),), windows

    def _requantize(self, view: LayerView, tile: Tile, strides: Strides) -> Call:
        op, out, block = view.op, view.outputs[0], self._block(view, tile)
        fast = self._is_fast(view) and len(tile.channels) % 4 == 0 and strides.output % 4 == 0
        numbers = (
            len(tile.rows) * extent(out).columns,
            len(tile.channels),
            strides.output,
            op.output_zero_point,
            op.act_min,
            op.act_max,
            int(out.dtype == "uint8"),
            int(op.rounds_once),
            block.multiplier,
            block.rounder,
            block.shift,
        )
        pointers = (Pointer("scratch:sums"), Pointer("output:0"), Pointer("constants"))
        return Call("ne16_requantize_rvp" if fast else "ne16_requantize", (*pointers, Table(numbers, "int32_t")))


def _blocks(job: Job) -> int:
    """Return the jobs that the core starts individually."""
    return -(-job.h_out // 2) * -(-job.w_out // 2) if job.stride == 2 else 0


def _compact(view: LayerView, tile: Tile) -> Strides:
    """Return strides of adjacent pixels."""
    return Strides(tuple(extent(tensor).channels for tensor in view.inputs), len(tile.channels))


@lru_cache(maxsize=65536)
def _cycles(job: Job) -> int:
    from stages.backends.accelerators.ne16.cycles import cycles  # numpy, which reading targets does without

    return cycles(job)


def _gathered(view: LayerView, tile: Tile, strides: Strides, gather: Gather) -> tuple[int, ...]:
    """Return the numbers of `struct ne16_windows`."""
    op, x = view.op, extent(view.inputs[0])
    (part,) = reads(view, tile)
    return (
        gather.rows, gather.columns, gather.width, gather.step, gather.taps, gather.channels,
        op.stride[0], op.stride[1], len(part.rows), x.columns, strides.inputs[0],
        part.above, op.padding[1], op.input_zero_point,
    )  # fmt: skip


def _total(counts: Any) -> int:
    return int(counts.sum()) if hasattr(counts, "sum") else int(counts)


def _largest(values: Any) -> int:
    return int(values.max()) if hasattr(values, "max") else int(values)
