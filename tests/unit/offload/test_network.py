"""Programs of whole networks, one after the other: what comes ahead of layers comes in time, and not too early."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from stages.backends.accelerators.accelerator import Call, Calls, Pointer, Strides, Table
from stages.backends.accelerators.tiles import Span, Tile, extent, reads
from stages.backends.targets.attached import Dma
from stages.ir.graph import Graph, LayerView
from stages.ir.models.zoo import build
from stages.ir.reference.integer import run_graph, to_physical
from stages.lower.offload.kernel import offload_kernel
from stages.lower.offload.machine import Machine
from stages.lower.offload.plan import Network, Offload, plan
from stages.lower.offload.program import Numbers, Place, Start
from stages.lower.offload.runs import runs
from stages.lower.offload.windows import window_bytes
from tests.support.integer import integer_graph
from tests.support.offloading import Engine, Memory, run_network
from tests.support.toy import Toy, ToyParameters

DMA = Dma(base=0, bytes_per_cycle=8, fixed_cycles=30, run_cycles=1, queue=4)


class Telling(Toy):
    """Its calls tell the tile; every third layer reads windows, so that constants behind it come before it."""

    def reads_windows(self, view: LayerView) -> bool:
        return view.op.op == "conv2d" and view.layer.index % 3 == 1

    def calls(self, view: LayerView, tile: Tile, strides: Strides) -> Calls:
        pointers = (Pointer("input:0"), Pointer("constants"), Pointer("output:0"))
        where = (tile.rows.first, tile.rows.end, tile.channels.first, tile.channels.end)
        return Calls(Call("start", (*pointers, Table((*where, *strides.inputs, strides.output), "int32_t"))))


class Exact(Engine):
    """Writes a tile of the right output, if in L1 it finds what the tile reads, and its constants."""

    def __init__(self, accelerator: Telling, values: dict[str, np.ndarray]) -> None:
        self._accelerator, self._values = accelerator, values
        self.tiles = 0

    def compute(self, view: LayerView, number: int, start: Start, memory: Memory) -> None:
        x, constants, y, told = start.call.arguments
        assert isinstance(x, Place) and isinstance(constants, Place) and isinstance(y, Place)
        assert isinstance(told, Numbers)
        *where, read, written = told.values
        tile = Tile(Span(*where[:2]), Span(*where[2:]))
        found = memory.bytes[x.role][self._index(view, tile, x, read, memory)]
        assert np.array_equal(found, self._read(view, tile)), f"layer {view.layer.index}: not the tile's input"
        block = self._accelerator.constants(view, tile.channels)
        there = memory.bytes[constants.role][constants.offset :][: block.size]
        assert np.array_equal(there, block), f"layer {view.layer.index}: not the tile's constants"
        out = runs(view.outputs[0], tile)
        to = memory.at(y, out.count, out.bytes, written if out.count > 1 else out.bytes)
        memory.bytes[y.role][to] = self._bytes(view.outputs[0].name, tile, view)
        self.tiles += 1

    def _index(self, view: LayerView, tile: Tile, place: Place, stride: int, memory: Memory) -> np.ndarray:
        if self._accelerator.reads_windows(view):
            pixels = len(tile.rows) * extent(view.outputs[0]).columns
            return memory.at(place, pixels, window_bytes(view), stride)
        (part,) = reads(view, tile)
        there = runs(view.inputs[0], part)
        return memory.at(place, there.count, there.bytes, stride if there.count > 1 else there.bytes)

    def _read(self, view: LayerView, tile: Tile) -> np.ndarray:
        if not self._accelerator.reads_windows(view):
            (part,) = reads(view, tile)
            there = runs(view.inputs[0], part)
            index = there.offset + np.arange(there.count)[:, None] * there.stride + np.arange(there.bytes)
            return self._values[view.inputs[0].name][index].reshape(-1)
        op, image = view.op, self._values[view.inputs[0].name].reshape(view.inputs[0].shape)
        taps = np.stack(
            op.taps(view, image.view(np.int8), op.input_zero_point), axis=3
        )  # N, rows, columns, tap, channel
        return taps[0, tile.rows.first : tile.rows.end].astype(np.int8).view(np.uint8).reshape(-1)

    def _bytes(self, name: str, tile: Tile, view: LayerView) -> np.ndarray:
        out = runs(view.outputs[0], tile)
        index = out.offset + np.arange(out.count)[:, None] * out.stride + np.arange(out.bytes)
        return self._values[name][index].reshape(-1)


@cache
def network(name: str) -> tuple[Graph, dict[str, np.ndarray]]:
    """The integer graph and the bytes of its tensors for one input."""
    graph = integer_graph(build(name))
    (entry,) = graph.inputs
    x = np.random.default_rng(4).integers(-128, 128, graph.tensors[entry].shape).astype(np.int8)
    values = run_graph(graph, [x])
    raw = {
        tensor.name: np.frombuffer(to_physical(values[tensor.name], tensor).tobytes(), np.uint8)
        for tensor in graph.tensors.values()
        if tensor.name in values
    }
    return graph, raw


def planned(graph: Graph, accelerator: Telling, l1: int) -> Offload:
    kernel = offload_kernel(Machine(accelerator, "l1", l1, DMA))
    able = [
        layer.index
        for layer in graph.layers
        if layer.op.op in accelerator.ops and not kernel.why_not_layer(graph.view(layer), None)  # type: ignore[arg-type]
    ]
    others = {layer.index: 500.0 for layer in graph.layers if layer.index not in able}
    return plan(Network(graph, able, others, frozenset()), kernel)


CASES = [
    ("ds_cnn", 96 << 10, False),
    ("ds_cnn", 9 << 10, True),
    ("resnet_8", 24 << 10, False),
]


@pytest.mark.parametrize(("name", "l1", "waits"), CASES)
def test_every_tile_finds_its_bytes_and_every_reader_too(name: str, l1: int, waits: bool) -> None:
    (graph, values), accelerator = network(name), Telling(ToyParameters(waits=waits))
    made = planned(graph, accelerator, l1)
    assert len(made.programs) >= 9
    for eager in (False, True):
        engine = Exact(accelerator, values)
        for tensor, found in run_network(graph, made, engine, values, eager=eager).items():
            assert np.array_equal(found, values[tensor]), (tensor, eager)
        assert engine.tiles == sum(program.tiles for program in made.programs.values())


def test_constants_come_ahead_over_two_layers_and_for_two_at_once() -> None:
    """In what is run above."""
    graph, _ = network("ds_cnn")
    during = {index: one.during for index, one in planned(graph, Telling(ToyParameters()), 96 << 10).programs.items()}
    shared = [index for index in during.values() if index is not None and list(during.values()).count(index) > 1]
    over = [index for index, begin in during.items() if begin is not None and index - begin > 1]
    assert shared and over, during
