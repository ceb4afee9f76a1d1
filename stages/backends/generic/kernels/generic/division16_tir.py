"""TIR of division of int16 activations."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import divide_by_pot, high_mul, int64, output, select, widen
from stages.backends.kernels.tir.last_axis import saturated
from stages.backends.kernels.tir.strides import Axis, offset
from stages.ir.graph import LayerView
from stages.support.lazy import T

# sign: of the divisor. inverse, bits: of its magnitude, which is `half` / 2^(31 - bits). v: the dividend.
_CELLS = ("sign", "half", "inverse", "bits", "v", "room", "rest", "exponent")


def wide_div(view: LayerView, axes: Sequence[Axis], divided: int) -> Lowering:
    """Return one block of loops over all elements. The outer `divided` loops select a divisor."""
    inputs, out = view.inputs, view.outputs[0]

    def meaning(b: Any) -> None:
        at: list[Any] = []
        with ExitStack() as loops:
            for depth, axis in enumerate([*axes, None]):
                if depth == divided:
                    _invert(b, widen(b.x1[offset(at, axes, 2)]))
                if axis is not None:
                    at.append(loops.enter_context(loop((f"i{depth}", axis.extent))))
            _divide(view, b, widen(b.x0[offset(at, axes, 1)]), offset(at, axes, 0))

    operands = (*(Operand(f"x{number}", (x.elements,), "int16") for number, x in enumerate(inputs)),)
    cells = tuple(accumulator(name) for name in _CELLS)
    block = Block("elements", (*operands, Operand("y", (out.elements,), "int16", "w"), *cells), meaning)
    with Function(view.op.op) as f:
        buffers = {operand.name: f.input(number, operand.shape, "int16") for number, operand in enumerate(operands)}
        y = f.output(0, (out.elements,), "int16")
        f.place(block, **buffers, y=y, **{name: f.scratch(name, (1,), "int32") for name in _CELLS})
    return f.lowering()


def _invert(b: Any, divisor: Any) -> None:
    """Compute sign, bits and inverse of a divisor: 2^(30 + bits) / its magnitude.

    This is gemmlowp's one_over_one_plus_x.
    """
    store(b.sign, select(divisor < 0, -1, 1), 0)
    store(b.half, T.max(divisor * b.sign[0], 1), 0)
    _count_bits(b, b.bits, b.half[0])
    store(b.half, T.shift_left(b.half[0], 31 - b.bits[0]), 0)
    store(b.inverse, T.Cast("int32", high_mul(b.half[0], -1010580540) + T.int64(1515870810)), 0)
    with loop(("step", 3)):
        error = T.int64(1 << 29) - high_mul(b.half[0], b.inverse[0])
        change = saturated(high_mul(b.inverse[0], error) * T.int64(4))
        store(b.inverse, b.inverse[0] + change, 0)
    store(b.inverse, saturated(int64(b.inverse[0]) * T.int64(2)), 0)


def _divide(view: LayerView, b: Any, dividend: Any, at: Any) -> None:
    """Compute y[at] by the formula of `stages.ir.operators.wide_div.WideDiv`."""
    op = view.op
    store(b.v, dividend * b.sign[0], 0)
    _count_bits(b, b.room, select(b.v[0] < 0, -1 - b.v[0], b.v[0]))
    store(b.room, 31 - b.room[0], 0)
    store(b.exponent, T.bitwise_and(b.room[0] + b.bits[0] - (1 + op.output_shift), 63), 0)
    shifted = T.shift_left(T.int64(1), int64(b.room[0])) * int64(b.v[0])
    store(b.v, T.Cast("int32", high_mul(shifted, b.inverse[0])), 0)
    store(b.v, T.Cast("int32", high_mul(b.v[0], op.output_multiplier)), 0)
    exponent, scaled = b.exponent[0], int64(b.v[0])
    undefined = T.shift_right(scaled, int64(T.bitwise_and(exponent, 31))) + T.Cast("int64", scaled >= T.int64(0))
    divided = select(exponent > 31, undefined, divide_by_pot(scaled, T.min(exponent, 31)))
    store(b.y, output(view, T.Cast("int32", divided)), at)


def _count_bits(b: Any, cell: Any, value: Any) -> None:
    """Count the bits of a value in [0, 2^16)."""
    store(b.rest, value, 0)
    store(cell, 0, 0)
    for bits in (8, 4, 2, 1):
        more = T.Cast("int32", b.rest[0] >= 1 << bits) * bits
        store(cell, cell[0] + more, 0)
        store(b.rest, T.shift_right(b.rest[0], more), 0)
    store(cell, cell[0] + b.rest[0], 0)
