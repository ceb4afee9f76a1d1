"""Programs of layers in tiles: whatever the tiles and buffers are, every byte of the output is right."""

import itertools
from typing import Any

import numpy as np
import pytest

from stages.backends.accelerators.tiles import reads
from stages.backends.targets.attached import Dma
from stages.ir.graph import Conv2D, DepthwiseConv2D, Graph, Layer, LayerView, Tensor
from stages.lower.offload.machine import Machine
from stages.lower.offload.program import Place, Start
from stages.lower.offload.runs import runs, stride
from stages.lower.offload.schedule import constant_blocks, program
from stages.lower.offload.tile_costs import TileCosts
from stages.lower.offload.tiling import TilingCandidate, tiling_candidates, with_more_constant_buffers
from stages.lower.offload.timeline import alone
from tests.support.offloading import Engine, Memory, run
from tests.support.toy import Toy, ToyParameters

ACT = {"output_zero_point": 3, "act_min": -128, "act_max": 127}
DMA = Dma(base=0, bytes_per_cycle=8, fixed_cycles=20, run_cycles=1, queue=4)


def convolution(depthwise: bool, size: tuple[int, int], channels: tuple[int, int], step: int) -> LayerView:
    """A 3x3 convolution with padding, int8, weights from a seed."""
    rng = np.random.default_rng(5)
    fields: dict[str, Any] = {
        "kernel": (3, 3), "stride": (step, step), "padding": (1, 1, 1, 1), "dilation": (1, 1), "input_zero_point": -5,
        "in_channels": channels[0], "out_channels": channels[1], **ACT,
    }  # fmt: skip
    op = DepthwiseConv2D(depth_multiplier=1, **fields) if depthwise else Conv2D(**fields)
    shape = (1, 3, 3, channels[1]) if depthwise else (channels[1], 3, 3, channels[0])
    constants = {
        "weights": rng.integers(-128, 128, shape).astype(np.int8),
        "bias": rng.integers(-999, 999, channels[1]).astype(np.int32),
        "multiplier": rng.integers(1 << 30, (1 << 31) - 1, channels[1]).astype(np.int32),
        "shift": rng.integers(-9, -7, channels[1]).astype(np.int32),
    }
    out = tuple((extent - 1) // step + 1 for extent in size)
    tensors = {
        "x": Tensor(name="x", shape=(1, *size, channels[0]), dtype="int8"),
        "y": Tensor(name="y", shape=(1, *out, channels[1]), dtype="int8"),
    }
    layer = Layer(index=0, name="y", op=op, inputs=("x",), outputs=("y",), constants={role: role for role in constants})
    return Graph(tensors, [layer], ["x"], ["y"], constants).view(layer)


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


@pytest.mark.parametrize(("depthwise", "size", "step"), CASES)
def test_every_way_gives_the_bytes_of_the_reference(depthwise: bool, size: tuple[int, int], step: int) -> None:
    view = convolution(depthwise, size, (12, 12) if depthwise else (6, 12), step)
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
