"""A tiling candidate as commands: transfers, starts, waits and work of the core, in order.

While the engine works on a tile, the core finishes the previous one and starts the transfers for the next:

    core      before 0  start 0  before 1  start 1  wait 0  after 0  before 2  start 2  wait 1  after 1  ...
    engine                       [ tile 0          ][ tile 1                    ][ tile 2 ...
    dma       bring 0,  1                                       take 0, bring 2            take 1, bring 3

A buffer is refilled when all tiles that read it are done, and overwritten when its output has been copied out.
Transfers finish in order, so a fence is a number of transfers that may be pending.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from stages.backends.accelerators.accelerator import Accelerator, Call, Calls, Pointer, Strides, Table
from stages.backends.accelerators.tiles import Span, reads
from stages.ir.graph import LayerView
from stages.lower.offload.interleave import interleave
from stages.lower.offload.machine import Machine, aligned
from stages.lower.offload.program import (
    Await,
    Buffer,
    Command,
    Fence,
    Function,
    Numbers,
    Place,
    Program,
    Start,
    Transfer,
    Value,
    Work,
)
from stages.lower.offload.runs import runs, stride
from stages.lower.offload.tile_costs import TileCosts
from stages.lower.offload.tiling import Stream, TilingCandidate
from stages.lower.offload.windows import PADDING, gather, padding_block, window_bytes
from stages.support.lazy import np, npt

CONSTANTS = "constants"
_NOTHING = Function(name="")
_SKETCHED = Calls(Call(""))


def constant_offsets(view: LayerView, candidate: TilingCandidate, machine: Machine) -> dict[tuple[int, int], int]:
    """Return each tile's offset in the layer's constants, by (first, end) channel."""
    offsets, offset = {}, 0
    for channels in sorted({tile.channels for tile in candidate.tiles}):
        offsets[channels.first, channels.end] = offset
        offset += aligned(machine.accelerator.constant_bytes(view, channels))
    return offsets


def constant_blocks(view: LayerView, candidate: TilingCandidate, machine: Machine) -> npt.NDArray[np.uint8]:
    """Return the layer's constants, each block at its offset of `constant_offsets`."""
    offsets = constant_offsets(view, candidate, machine)
    blocks = [machine.accelerator.constants(view, Span(*channels)) for channels in offsets]
    constants = np.zeros(sum(aligned(block.size) for block in blocks), np.uint8)
    for offset, block in zip(offsets.values(), blocks, strict=True):
        constants[offset : offset + block.size] = block
    return constants


def constants_of(view: LayerView, candidate: TilingCandidate, machine: Machine) -> dict[str, npt.NDArray[np.uint8]]:
    """Return the arrays that a program's transfers read, by the key of their `constant:` role."""
    constants = {CONSTANTS: constant_blocks(view, candidate, machine)}
    if machine.accelerator.reads_windows(view):
        constants[PADDING] = np.frombuffer(padding_block(view), np.uint8)
    return constants


def gathers(view: LayerView, accelerator: Accelerator[Any]) -> bool:
    """Return whether transfers gather or interleave the tiles' inputs, wherever they lie."""
    return accelerator.reads_windows(view) or accelerator.reads_pieces(view) > 0


def program(
    view: LayerView,
    candidate: TilingCandidate,
    machine: Machine,
    during: int | None = None,
    between: int = 0,
    *,
    sketch: TileCosts | None = None,
) -> Program:
    """Return the program of a layer.

    during   index of the layer during which constants are transferred early, None: they are not
    between  early transfers of later layers that start before this layer runs, after its own
    sketch   costs of tiles; calls then have no arguments, which is enough to estimate cycles
    """
    schedule = _Schedule(view, candidate, machine, sketch is not None, sketch or TileCosts(view, machine.accelerator))
    ahead = schedule.bring_ahead(between) if during is not None else ()
    schedule.run()
    is_ahead = {stream.name for stream in candidate.streams if stream.name == CONSTANTS and during is not None}
    buffers = [
        Buffer(name=_buffer(stream.name, slot), bytes=stream.bytes, ahead=stream.name in is_ahead)
        for stream in candidate.streams
        for slot in range(stream.used)
    ]
    return Program(
        commands=tuple(schedule.commands),
        buffers=tuple(buffers),
        ahead=tuple(ahead),
        during=during if ahead else None,
        tiles=len(candidate.tiles),
        rows=candidate.rows,
        channels=candidate.channels,
        wait=machine.accelerator.wait,
    )


def _buffer(stream: str, slot: int) -> str:
    """Return the name of a stream's buffer, such as `input_0_1`."""
    return f"{stream.replace(':', '_')}_{slot}"


@dataclass
class _Schedule:
    view: LayerView
    candidate: TilingCandidate
    machine: Machine
    sketch: bool
    alike: TileCosts
    commands: list[Command] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._streams = {stream.name: stream for stream in self.candidate.streams}
        self._offsets = constant_offsets(self.view, self.candidate, self.machine)
        self._calls: dict[int, Calls] = {}
        self._waits = self.machine.accelerator.start_waits(self.view)
        self._windows = self.machine.accelerator.reads_windows(self.view)
        self._pieces = self.machine.accelerator.reads_pieces(self.view)
        self._parts = [reads(self.view, tile) for tile in self.candidate.tiles]
        self._issued = 0  # started transfers
        self._fenced = 0  # transfers that are known to be done
        self._brought: dict[tuple[str, int], int] = {}  # number of the transfer that fills a buffer
        self._copied_out: dict[int, int] = {}  # number of the transfer that copies a tile's output
        self._finished = 0  # all earlier tiles are finished
        self._readers = {
            name: {ordinal: tile for tile, ordinal in enumerate(stream.ordinals)}
            for name, stream in self._streams.items()
        }
        self._loads = [name for name in self._streams if name == CONSTANTS or name.startswith("input:")]

    # ---- transfers ---------------------------------------------------------------------------------------------

    def bring_ahead(self, between: int) -> tuple[Transfer, ...]:
        """Return early transfers of the first constants, before `between` others and the layer."""
        stream = self._streams.get(CONSTANTS)
        if stream is None:
            return ()
        first = {ordinal: tile for tile, ordinal in reversed(list(enumerate(stream.ordinals)))}
        early: list[Transfer] = []
        for ordinal in range(stream.used):
            transfers = list(self._transfers(stream, first[ordinal]))
            early += transfers
            self._issued += sum(transfer.times for transfer in transfers)
            self._brought[CONSTANTS, ordinal] = self._issued
        self._issued += between
        return tuple(early)

    def _bring(self, stream: Stream, tile: int) -> None:
        for transfer in self._transfers(stream, tile):
            self.commands.append(transfer)
            self._issued += transfer.times
        self._brought[stream.name, stream.ordinals[tile]] = self._issued

    def _transfers(self, stream: Stream, tile: int) -> Iterator[Transfer]:
        to = Place(role=f"scratch:{_buffer(stream.name, stream.ordinals[tile] % stream.slots)}")
        if stream.name == CONSTANTS:
            channels = self.candidate.tiles[tile].channels
            count = self.machine.accelerator.constant_bytes(self.view, channels)
            source = Place(role=f"constant:{CONSTANTS}", offset=self._offsets[channels.first, channels.end])
            yield Transfer(to=to, source=source, bytes=count)
            return
        if self._windows:
            yield from gather(self.view, self.candidate.tiles[tile], to.role, self.machine.transfer_cost)
            return
        if self._pieces:
            yield from interleave(self.view, self.candidate.tiles[tile], to.role, self._pieces)
            return
        number = int(stream.name.partition(":")[2])
        source_runs = runs(self.view.inputs[number], self._parts[tile][number])
        if source_runs.total:
            source = Place(role=stream.name, offset=source_runs.offset)
            yield Transfer(
                to=to, source=source, bytes=source_runs.bytes, runs=source_runs.count, to_stride=source_runs.bytes,
                source_stride=source_runs.stride,
            )  # fmt: skip

    def _fence(self, number: int) -> None:
        """Wait until the transfer of that number is done."""
        if number > self._fenced:
            if self.commands and isinstance(self.commands[-1], Fence):
                self.commands.pop()
            self.commands.append(Fence(left=self._issued - number))
            self._fenced = number

    def _is_free(self, stream: Stream, ordinal: int) -> bool:
        """Return whether all tiles that read the buffer's previous content are done."""
        last = self._last_reader(stream, ordinal - stream.slots)
        return last is None or last < self._finished

    def _last_reader(self, stream: Stream, ordinal: int) -> int | None:
        return self._readers[stream.name].get(ordinal)

    # ---- tiles -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Write the commands of the layer."""
        count = len(self.candidate.tiles)
        most = max([2, *(self._streams[name].slots for name in self._loads)])
        for tile in range(count):
            self._bring_all(tile)
            self._release_buffers(tile)
            if self._waits and tile + 1 < count:
                self._bring_early(tile + 1)
            for name in self._loads:
                self._fence(self._brought[name, self._streams[name].ordinals[tile]])
            self._start(tile)
            if tile:
                self._finish(tile - 1)
            for later in range(tile + 1, min(tile + most, count)):
                self._bring_early(later)
        self._finish(count - 1)
        self._fence(max(self._copied_out.values(), default=0))

    def _bring_all(self, tile: int) -> None:
        """Start the tile's missing transfers; finish tiles that still use the buffers."""
        for name in self._loads:
            stream = self._streams[name]
            ordinal = stream.ordinals[tile]
            if (name, ordinal) in self._brought:
                continue
            last = self._last_reader(stream, ordinal - stream.slots)
            if last is not None:
                self._finish(last)
            self._bring(stream, tile)

    def _bring_early(self, tile: int) -> None:
        for name in self._loads:
            stream = self._streams[name]
            ordinal = stream.ordinals[tile]
            if (name, ordinal) not in self._brought and self._is_free(stream, ordinal):
                self._bring(stream, tile)

    def _release_buffers(self, tile: int) -> None:
        """Finish tiles whose scratch, output or place in the engine's queue the tile needs."""
        slots = [stream.slots for name, stream in self._streams.items() if name not in self._loads]
        before = tile - min([*slots, 1 if self._waits else self.machine.accelerator.queue])
        if before >= 0:
            self._finish(before)
        output = self._streams.get("output:0")
        if output is not None and tile >= output.slots:
            self._fence(self._copied_out[tile - output.slots])

    def _start(self, tile: int) -> None:
        shape, calls = self.candidate.tiles[tile], self._calls_of(tile)
        core = self.alike.core(shape)
        self._work(calls.before, tile, core.before)
        cycles, start = self.alike.cycles(shape), self._function(calls.start, tile)
        self.commands.append(Start(tile=tile, call=start, cycles=cycles, instructions=core.start, waits=self._waits))

    def _finish(self, tile: int) -> None:
        while self._finished <= tile:
            self._finished += 1
            self._finish_one(self._finished - 1)

    def _finish_one(self, tile: int) -> None:
        self.commands.append(Await(tile=tile))
        shape = self.candidate.tiles[tile]
        self._work(self._calls_of(tile).after, tile, self.alike.core(shape).after)
        stream = self._streams.get("output:0")
        if stream is not None:
            output_runs = runs(self.view.outputs[0], shape)
            source = Place(role=f"scratch:{_buffer(stream.name, tile % stream.slots)}")
            to = Place(role="output:0", offset=output_runs.offset)
            self.commands.append(
                Transfer(
                    to=to,
                    source=source,
                    bytes=output_runs.bytes,
                    runs=output_runs.count,
                    to_stride=output_runs.stride,
                    source_stride=output_runs.bytes,
                )
            )
            self._issued += 1
            self._copied_out[tile] = self._issued

    def _work(self, calls: Sequence[Call], tile: int, instructions: float) -> None:
        """Write the core's calls, which take `instructions` in all."""
        if self.sketch and instructions:
            self.commands.append(Work(call=_NOTHING, instructions=instructions))
        for number, call in enumerate(calls):
            self.commands.append(Work(call=self._function(call, tile), instructions=0.0 if number else instructions))

    def _calls_of(self, tile: int) -> Calls:
        if self.sketch:
            return _SKETCHED
        if tile not in self._calls:
            strides = self._strides(tile)
            self._calls[tile] = self.machine.accelerator.calls(self.view, self.candidate.tiles[tile], strides)
        return self._calls[tile]

    def _strides(self, tile: int) -> Strides:
        candidate = self.candidate
        output = stride(self.view.outputs[0], candidate.tiles[tile], resident=candidate.resident_output)
        if self._windows:
            return Strides((window_bytes(self.view),), output)
        if self._pieces:
            count = len(self.view.inputs)
            return Strides((count * self._pieces,) * count, output)
        inputs = tuple(
            stride(tensor, part, resident=resident)
            for tensor, part, resident in zip(
                self.view.inputs, self._parts[tile], candidate.resident_inputs, strict=True
            )
        )
        return Strides(inputs, output)

    # ---- calls -------------------------------------------------------------------------------------------------

    def _function(self, call: Call, tile: int) -> Function:
        return Function(name=call.function, arguments=tuple(self._value(argument, tile) for argument in call.arguments))

    def _value(self, argument: int | Pointer | Table, tile: int) -> Value:
        if isinstance(argument, Pointer):
            begin = self._place(argument.role, tile)
            return Place(role=begin.role, offset=begin.offset + argument.offset)
        if isinstance(argument, Table):
            return Numbers(values=argument.values, ctype=argument.ctype)
        return argument

    def _place(self, role: str, tile: int) -> Place:
        """Return the place in L1 of what the tile's calls name by `role`."""
        if role in self._streams:
            stream = self._streams[role]
            return Place(role=f"scratch:{_buffer(role, stream.ordinals[tile] % stream.slots)}")
        kind, _, number = role.partition(":")
        if kind == "input":
            return Place(role=role, offset=runs(self.view.inputs[int(number)], self._parts[tile][int(number)]).offset)
        return Place(role=role, offset=runs(self.view.outputs[0], self.candidate.tiles[tile]).offset)
