"""Pieces of two tensors that transfers lay side by side, and constants that come while no layer waits for these."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stages.accelerators.tiles import Span, Tile
from stages.graph import Graph, Layer, LayerView, Tensor
from stages.offload.kernel import offload_kernel
from stages.offload.machine import Machine
from stages.offload.pieces import lay
from stages.offload.plan import Network, plan
from stages.offload.program import Settle, Start, Transfer
from stages.operators.arithmetic import Add
from stages.targets.attached import Dma
from tests.support.offloading import Memory, apart
from tests.support.toy import Toy, ToyParameters
from tests.unit.offload.test_schedule import convolution

DMA = Dma(base=0, bytes_per_cycle=8, fixed_cycles=20, run_cycles=1, queue=4)


def addition(shape: tuple[int, ...]) -> LayerView:
    fields = {"zero_points": (0, 0), "left_shift": 20, "multipliers": (1, 1), "shifts": (0, 0)}
    op = Add(
        op="add", output_multiplier=1, output_shift=0, output_zero_point=0, act_min=-128, act_max=127, **fields
    )  # fmt: skip
    tensors = {name: Tensor(name=name, shape=shape, dtype="int8") for name in "abc"}
    layer = Layer(index=0, name="c", op=op, inputs=("a", "b"), outputs=("c",))
    return Graph(tensors, [layer], ["a", "b"], ["c"]).view(layer)


@pytest.mark.parametrize(("first", "end"), [(0, 6), (0, 2), (2, 4), (4, 6)])
def test_pieces_lie_side_by_side(first: int, end: int) -> None:
    view, rng = addition((1, 6, 4, 24)), np.random.default_rng(4)
    a, b = (rng.integers(0, 256, (6, 96)).astype(np.uint8) for _ in range(2))
    size = (end - first) * 96
    memory = Memory({"input:0": a.reshape(-1), "input:1": b.reshape(-1), "both": np.zeros(2 * size, np.uint8)})
    for transfer in lay(view, Tile(Span(first, end), Span(0, 24)), "both", 16):
        for one in apart(transfer):
            source = memory.at(one.source, one.runs, one.bytes, one.source_stride)
            memory.bytes["both"][memory.at(one.to, one.runs, one.bytes, one.to_stride)] = memory.bytes[one.source.role][
                source
            ]
    pieces = [values[first:end].reshape(-1, 16) for values in (a, b)]
    assert np.array_equal(memory.bytes["both"].reshape(-1, 2, 16), np.stack(pieces, axis=1))


class Gathering(Toy):
    """Reads windows in the layer in the middle."""

    def reads_windows(self, view: LayerView) -> bool:
        return view.layer.index == 2


def chain() -> Graph:
    """Five convolutions."""
    part = convolution(False, (9, 5), (12, 12), 1)
    names = ["t0", "t1", "t2", "t3", "t4", "t5"]
    tensors = {name: part.inputs[0].model_copy(update={"name": name}) for name in names}
    layers = [
        part.layer.model_copy(update={"index": n, "name": to, "inputs": (x,), "outputs": (to,)})
        for n, (x, to) in enumerate(itertools.pairwise(names))
    ]
    constants = {role: part.constant(role) for role in part.layer.constants}
    return Graph(tensors, layers, ["t0"], ["t5"], constants)


def test_constants_come_before_a_layer_that_waits_for_transfers_of_its_inputs() -> None:
    graph = chain()
    kernel = offload_kernel(Machine(Gathering(ToyParameters()), "l1", 64 << 10, DMA))
    programs = plan(Network(graph, range(5), {}, frozenset()), kernel).programs
    assert {index: one.during for index, one in programs.items()} == {0: None, 1: 0, 2: 1, 3: 1, 4: 3}

    # However slow DMA is, what a tile reads has come when it is started.
    waiting: list[tuple[int, str]] = []
    for index, program in programs.items():
        for other in (one for one in programs.items() if one[1].during == index):
            waiting += [(other[0], one.to.role) for transfer in other[1].ahead for one in apart(transfer)]
        for command in program.commands:
            if isinstance(command, Transfer):
                waiting += [(index, one.to.role) for one in apart(command)]
            elif isinstance(command, Settle):
                del waiting[: max(len(waiting) - command.left, 0)]
            elif isinstance(command, Start):
                read = {one.role for one in command.call.arguments if hasattr(one, "role")}
                assert not [one for one in waiting if one[0] == index and one[1] in read], index
