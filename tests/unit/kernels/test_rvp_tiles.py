"""Operands that broadcast on RISC-V P: what is written out for tiles, and when."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest

from stages.graph import LayerView
from stages.kernels.rvp.add import ADD, Add
from stages.kernels.rvp.operands import plan, why_not_rows
from stages.kernels.rvp.tiles import Operand, Tiles, tiles
from stages.kernels.tir.strides import Broadcast
from stages.targets.load import load_target
from tests.conformance.broadcasts import Shape, pairs
from tests.conformance.draw import Draw
from tests.conformance.operators.add import add

RV64, RV32 = load_target("rv64-rvp"), load_target("rv32-rvp")


def layer(first: Shape, second: Shape, layouts: tuple[str, str, str] = ("", "", "")) -> LayerView:
    scales = {"multipliers": (1 << 30, 1 << 30), "shifts": (0, -1), "rounding": "double"}
    return add(Draw(1), [first, second], layouts, **scales)  # type: ignore[no-any-return]


def read(x: np.ndarray, start: int, operand: Operand, count: int) -> np.ndarray:
    """The elements that a row of `count` meets, of an input from `start` on."""
    data = x[start:]
    for repeat in operand.repeats:
        assert data.size >= repeat.read, "reads behind the input"
        blocks = data[: repeat.read].reshape(repeat.blocks, 1, repeat.length)
        data = np.broadcast_to(blocks, (repeat.blocks, repeat.times, repeat.length)).reshape(-1)
    assert data.size >= (count if operand.step else 1)
    return data[:count] if operand.step else np.full(count, data[0])


def computed(made: Tiles, number: int, x: np.ndarray) -> np.ndarray:
    """What the output's elements meet of an input, tile after tile; whole tiles begin with registers."""
    found = []
    for at in itertools.product(*(range(axis.extent) for axis in made.outer)):
        start = sum(i * axis.strides[1 + number] for i, axis in zip(at, made.outer, strict=True))
        for first in range(0, made.axis.extent, made.steps):
            whole = first + made.steps <= made.axis.extent
            steps = made.steps if whole else made.left
            operand = (made.operands if whole else made.last)[number]
            begins = start + first * operand.stride
            assert not sum(one.size for one in found) % made.register
            if operand.step and not operand.repeats:
                assert begins % made.register == 0
            found.append(read(x, begins, operand, steps * made.inner))
    return np.concatenate(found)


@pytest.mark.parametrize("register", [4, 8])
@pytest.mark.parametrize(("first", "second"), pairs())
def test_tiles_meet_what_numpy_broadcasts(first: Shape, second: Shape, register: int) -> None:
    view = layer(first, second)
    made, out = tiles(view, register), view.outputs[0].shape
    for number, shape in enumerate((first, second)):
        x = np.arange(prod(shape))
        assert np.array_equal(computed(made, number, x), np.broadcast_to(x.reshape(shape), out).reshape(-1))


@pytest.mark.parametrize(("first", "second"), pairs())
def test_registers_of_64_bits_take_no_more_than_those_of_32(first: Shape, second: Shape) -> None:
    view = layer(first, second)
    assert Add().cost(view, None, RV64) < Add().cost(view, None, RV32)


def test_rows_are_read_as_they_are_where_that_takes_no_more() -> None:
    for first, second in (((5, 100),) * 2, ((100, 64), (1,)), ((4, 400), (400,)), ((4, 400), (4, 1))):
        assert isinstance(plan(layer(first, second), RV64), Broadcast)
    short = plan(layer((40, 8), (8,)), RV64)
    assert isinstance(short, Tiles)
    assert short.one_call
    assert short.rows.extent * short.steps == 40, "a last tile of its own would be a call more"


def test_a_layer_has_the_fields_of_its_calls() -> None:
    """A period of 12 bytes in tiles of whole registers, and what is left."""
    view = layer((101, 12), (12,))
    made = plan(view, RV64)
    assert isinstance(made, Tiles)
    packed = Add().pack_for(view, None, RV64)
    whole, last = (dict(zip(ADD.fields, packed[key], strict=True)) for key in ("fields", "last"))
    assert whole["rows"] * whole["count"] + last["rows"] * last["count"] == 101 * 12
    assert (whole["count"] % 8, whole["row0"], whole["row1"]) == (0, whole["count"], 0)
    assert {key: whole[key] for key in ADD.fields[6:]} == {key: last[key] for key in ADD.fields[6:]}


def test_what_cannot_be_written_out_is_refused() -> None:
    """Planes that meet pixels; a row whose registers repeat only after eight times its 5,001 bytes."""
    planes = layer((1, 4, 4, 6), (1, 4, 1, 6), ("NHWC", "NCHW", "NHWC"))
    assert why_not_rows(planes, RV64) == "an input is read in another order than the output is written"
    assert why_not_rows(layer((9, 5001), (5001,)), RV64) == "an input would be written out in 40,008 bytes"
    assert why_not_rows(layer((9, 5001), (5001,)), RV32) == "an input would be written out in 20,004 bytes"
    assert why_not_rows(layer((9, 5000), (5000,)), RV64) == ""
