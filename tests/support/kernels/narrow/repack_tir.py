"""Two elements of 4 bits in a byte, the first in its lower half, in TIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Lowering


def packed(count: int) -> Lowering:
    """y[i / 2] from x[i]; an odd element has its byte to itself."""

    def meaning(b: Any) -> None:
        with loop(("i", -(-count // 2))) as i:
            low = T.Cast("int32", b.x[2 * i]) & 15
            last = T.min(2 * i + 1, count - 1)
            high = T.Select(2 * i + 1 < count, T.Cast("int32", b.x[last]) & 15, T.int32(0))
            store(b.y, T.Cast("uint8", low | (high << 4)), i)

    return _layer(meaning, (count,), "int8", (-(-count // 2),), "uint8")


def unpacked(count: int) -> Lowering:
    """y[i] from x[i / 2]."""

    def meaning(b: Any) -> None:
        with loop(("i", count)) as i:
            nibble = (T.Cast("int32", b.x[T.truncdiv(i, 2)]) >> (4 * T.truncmod(i, 2))) & 15
            store(b.y, T.Cast("int8", (nibble ^ 8) - 8), i)

    return _layer(meaning, (-(-count // 2),), "uint8", (count,), "int8")


def _layer(meaning: Any, read: tuple[int], read_as: str, written: tuple[int], written_as: str) -> Lowering:
    operands = (Operand("x", read, read_as), Operand("y", written, written_as, "w"))
    with Function("repack") as f:
        x, y = f.input(0, read, read_as), f.output(0, written, written_as)
        f.place(Block("layer", operands, meaning), x=x, y=y)
    return f.lowering()
