"""Programs of layers in tiles: whatever the tiles and buffers are, every byte of the output is right."""

import itertools

import numpy as np
import pytest

from stages.backends.accelerators.tiles import reads
from stages.backends.targets.attached import Dma
from stages.ir.graph import LayerView
from stages.lower.offload.machine import Machine
from stages.lower.offload.program import Place, Start
from stages.lower.offload.runs import runs, stride
from stages.lower.offload.schedule import constant_blocks, program
from stages.lower.offload.tile_costs import TileCosts
from stages.lower.offload.tiling import TilingCandidate, tiling_candidates, with_more_constant_buffers
from stages.lower.offload.timeline import alone
from tests.conformance.draw import Draw
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.depthwise_conv2d import depthwise
from tests.conformance.operators.windows import Window
from tests.support.offloading import Engine, Memory, run
from tests.support.toy import Toy, ToyParameters

DMA = Dma(base=0, bytes_per_cycle=8, fixed_cycles=20, run_cycles=1, queue=4)


def convolution(is_depthwise: bool, size: tuple[int, int], channels: tuple[int, int], step: int) -> LayerView:
    """A 3x3 convolution with padding on int8."""
    window, ends = Window(size, (3, 3), (step, step), (1, 1, 1, 1)), {"act_min": -128, "act_max": 127}
    if is_depthwise:
        return depthwise(Draw(5), window, channels[1], **ends)
    return conv2d(Draw(5), window, *channels, **ends)


class Exact(Engine):
    """Takes a tile of the reference's output, if the input that lies in L1 is that of the tile, and its constants."""

    def __init__(
        self, x: np.ndarray, expected: np.ndarray, candidate: TilingCandidate, view: LayerView, machine: Machine
    ) -> None:
        self._x, self._expected, self._way, self._machine = x, expected, candidate, machine

    def compute(self, view: LayerView, number: int, start: Start, memory: Memory) -> None:
        tile = self._way.tiles[number]
        x, constants, y, *_ = (argument for argument in start.call.arguments if isinstance(argument, Place))
        (part,) = reads(view, tile)
        for tensor, whole, region, there, place in (
            (view.inputs[0], self._x, part, self._way.resident_inputs[0], x),
            (view.outputs[0], self._expected, tile, self._way.resident_output, y),
        ):
            where = runs(tensor, region)
            step = stride(tensor, region, resident=there)
            index = memory.at(place, where.count, where.bytes, step if where.count > 1 else where.bytes)
            values = whole.reshape(-1)[
                where.offset + np.arange(where.count)[:, None] * where.stride + np.arange(where.bytes)
            ]
            if region is tile:
                memory.bytes[place.role][index] = values.reshape(-1)
            else:
                assert np.array_equal(memory.bytes[place.role][index], values.reshape(-1)), "not the tile's input"
        block = self._machine.accelerator.constants(view, tile.channels)
        found = memory.bytes[constants.role][constants.offset :][: block.size]
        assert np.array_equal(found, block), "not the tile's constants"


CASES = list(itertools.product((False, True), ((9, 5), (8, 3)), (1, 2)))


@pytest.mark.parametrize(("is_depthwise", "size", "step"), CASES)
def test_every_way_gives_the_bytes_of_the_reference(is_depthwise: bool, size: tuple[int, int], step: int) -> None:
    view = convolution(is_depthwise, size, (12, 12) if is_depthwise else (6, 12), step)
    machine = Machine(Toy(ToyParameters(waits=step == 2)), "l1", 4 << 10, DMA)
    x = np.random.default_rng(1).integers(-128, 128, view.inputs[0].shape).astype(np.int8)
    expected = view.op.compute(view, x).astype(np.int8)
    tried, alike = set(), TileCosts(view, machine.accelerator)
    cut = tiling_candidates(view, machine.accelerator, 2000, alike)
    cut += [more for candidate in cut for more in with_more_constant_buffers(candidate) if more.bytes <= 2000]
    assert {stream.used for candidate in cut for stream in candidate.streams} >= {1, 2, 3}
    for candidate, ahead in itertools.product(cut, (False, True)):
        given = {
            "input:0": x.view(np.uint8).reshape(-1),
            "output:0": np.full(expected.size, 0xA5, np.uint8),
            "constant:constants": constant_blocks(view, candidate, machine),
        }
        made = program(view, candidate, machine, during=-1 if ahead else None)
        for eager in (False, True):
            engine = Exact(x.view(np.uint8), expected.view(np.uint8), candidate, view, machine)
            memory = run(made, view, given, engine, eager=eager)
            assert np.array_equal(memory.bytes["output:0"].view(np.int8), expected.reshape(-1)), (
                candidate,
                ahead,
                eager,
            )
        assert sum(-(-buffer.bytes // 16) * 16 for buffer in made.buffers) == candidate.bytes <= 2000
        sketched = program(view, candidate, machine, during=-1 if ahead else None, sketch=alike)
        assert alone(sketched, machine) == alone(made, machine)
        tried.add(
            (
                candidate.resident_inputs,
                candidate.resident_output,
                len(candidate.tiles) > 1,
                max(s.slots for s in candidate.streams),
            )
        )
    assert len(tried) >= 8
