"""TIR of ADD and SUB of tensors of one shape: one block of all elements."""

from collections.abc import Sequence
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.ir.graph import LayerView


def rescaled_sum(op: Any, elements: Sequence[Any]) -> Any:
    """Return the requantized sum (SUB: difference) of two elements.

    Zero point and bounds of the output are not applied.
    """
    shifted = [(widen(x) - op.zero_points[n]) * (1 << op.left_shift) for n, x in enumerate(elements)]
    scaled = [requantize(x, op.multipliers[n], op.shifts[n], op.rounding) for n, x in enumerate(shifted)]
    total = scaled[0] + scaled[1] if op.sign > 0 else scaled[0] - scaled[1]
    return requantize(total, op.output_multiplier, op.output_shift, op.rounding)


def add(view: LayerView, function: str, constants: Sequence[Operand], *, first: int = 0) -> Lowering:
    """Return the layer as `function(x0, x1, y, count, constants...)`. x0 is input `first`."""
    op, y = view.op, view.outputs[0]
    count, dtype = y.elements, y.dtype

    def meaning(b: Any) -> None:
        with loop(("i", count)) as i:
            elements = [(b.x0 if number == first else b.x1)[i] for number in range(2)]
            store(b.y, output(view, rescaled_sum(op, elements)), i)

    operands = (
        Operand("x0", (count,), dtype),
        Operand("x1", (count,), dtype),
        *constants,
        Operand("y", (count,), dtype, "w"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x0, b.x1, b.y, count, *(getattr(b, operand.name) for operand in constants)]

    block = Block("sum", operands, meaning, function, arguments)
    with Function(op.op) as f:
        inputs = [f.input(number, (count,), dtype) for number in range(2)]
        buffers = {operand.name: f.constant(operand.name, operand.shape, operand.dtype) for operand in constants}
        out = f.output(0, (count,), dtype)
        f.place(block, x0=inputs[first], x1=inputs[1 - first], y=out, **buffers)
    return f.lowering()
