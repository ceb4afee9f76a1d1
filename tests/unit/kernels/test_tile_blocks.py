"""Blocks: one meaning for the workload and the intrinsic, and TVM's refusal where they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import select, widen
from stages.tensorize.schedule import schedule

ROWS, DEPTH = 8, 5


def sums(zero_point: int, count: int = 2) -> Block:
    """y[i] = sum over k of (x[i, k] - zero_point) for `count` rows."""

    def meaning(b: Any) -> None:
        with loop(("i", count)) as i:
            store(b.acc, 0, 0)
            with loop(("k", DEPTH)) as k:
                store(b.acc, b.acc[0] + widen(b.x[i, k]) - zero_point, 0)
            store(b.y, b.acc[0], i)

    operands = (Operand("x", (count, DEPTH), "int8"), Operand("y", (count,), "int32", "w"), accumulator())
    return Block("sums", operands, meaning, "row_sums", lambda b: [b.x, b.y, count])


def lowering(block: Block) -> Lowering:
    with Function("layer") as f:
        x, y = f.input(0, (ROWS, DEPTH), "int8"), f.output(0, (ROWS,), "int32")
        acc = f.scratch("acc", (1,), "int32")
        with f.loop(("t", ROWS // 2)) as (t,):
            f.place(block, x=(x, t * 2, 0), y=(y, t * 2), acc=acc)
    return f.lowering()


def test_a_block_becomes_the_call_it_stands_for() -> None:
    made = lowering(sums(3))
    assert made.roles == ("input:0", "output:0")
    text = schedule(made, "test", "layer").script()
    assert 'call_extern("int32", "row_sums"' in text
    assert "- 3" not in text  # nothing of the meaning is left


def test_tvm_refuses_an_intrinsic_with_another_meaning() -> None:
    made = lowering(sums(3))
    wrong = replace(made.intrinsics[0], desc=sums(4).desc())
    with pytest.raises(RuntimeError, match="block sums is not what the intrinsic computes"):
        schedule(replace(made, intrinsics=[wrong]), "test", "layer")


def test_a_block_outside_of_loops_can_be_tensorized() -> None:
    with Function("layer") as f:
        x, y = f.input(0, (2, DEPTH), "int8"), f.output(0, (2,), "int32")
        f.place(sums(0), x=x, y=y, acc=f.scratch("acc", (1,), "int32"))
    assert "row_sums" in schedule(f.lowering(), "test", "layer").script()


def test_two_blocks_of_one_name_are_refused() -> None:
    with Function("layer") as f:
        x, y = f.input(0, (2, DEPTH), "int8"), f.output(0, (2,), "int32")
        acc = f.scratch("acc", (1,), "int32")
        f.place(sums(0), x=x, y=y, acc=acc)
        with pytest.raises(ValueError, match="layer has two different blocks named sums"):
            f.place(sums(1), x=x, y=y, acc=acc)


def test_a_tile_reads_its_position_from_an_operand() -> None:
    """A shifted copy whose tile leaves the input at both ends."""

    def meaning(b: Any) -> None:
        with position("start", b.first[0]) as start, loop(("i", 2)) as i:
            index = start + i - 1
            store(b.y, select(index >= 0, b.x[index], 7), i)

    operands = (
        Operand("x", (ROWS,), "int32"),
        Operand("first", (1,), "int32"),
        Operand("y", (2,), "int32", "w"),
    )
    block = Block("shifted", operands, meaning, "shift", lambda b: [b.x, b.y, b.first[0]])
    with Function("layer") as f:
        x, y = f.input(0, (ROWS,), "int32"), f.output(0, (ROWS,), "int32")
        first = f.scratch("first", (1,), "int32")
        with f.loop(("t", ROWS // 2)) as (t,):
            f.set_position("first", first, t * 2)
            f.place(block, x=x, first=first, y=(y, t * 2))
    assert '"shift"' in schedule(f.lowering(), "test", "layer").script()
