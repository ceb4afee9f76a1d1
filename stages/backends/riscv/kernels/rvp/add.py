"""ADD and SUB, with broadcasting."""

from typing import ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.structure import Structure
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.riscv.kernels.rvp.operands import ROWS, Operands
from stages.backends.riscv.kernels.rvp.tiles import Loop
from stages.ir.graph import LayerView


class Add(Operands):
    """ADD and SUB, four elements per 32-bit lane.

    32x16-bit products, kadd32, and the two roundings of the output.
    """

    name = "rvp.add_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    sources = ("add.c", "expand.c")
    headers: ClassVar[tuple[str, ...]] = ("add.h", "expand.h")
    structure = Structure(
        "rvp_add",
        (
            *(*ROWS, "shift", "zero_point0", "multiplier0", "rounder0", "zero_point1", "multiplier1", "rounder1"),
            *("multiplier", "rounder", "clip"),
        ),
    )
    loop = Loop(64, 40, 107)

    def fields(self, view: LayerView) -> dict[str, int]:
        op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
        fields = {"shift": op.left_shift - 15, "multiplier": op.output_multiplier}
        for number, shift in enumerate(op.shifts):
            fields |= {
                f"zero_point{number}": op.zero_points[number] - offset,
                f"multiplier{number}": op.multipliers[number],
                f"rounder{number}": (1 << (31 + shift)) + 1 if shift else 0,
            }
        return fields | {"rounder": 1 << (31 + op.output_shift), "clip": clip_word(view)}

    def why_not_arithmetic(self, view: LayerView) -> str:
        op = view.op
        # v << shift must fit 16 bits for v in [-255, 255]; then |t| <= 255 * 2^20: 2^(31 - s) + 1 is exact up to s = 3.
        if not 15 <= op.left_shift <= 20:
            return f"a left shift of {op.left_shift} is not supported"
        if any(not -3 <= shift <= 0 for shift in op.shifts):
            return f"input shifts {op.shifts} are not supported"
        if not -31 <= op.output_shift <= -1:
            return f"an output shift of {op.output_shift} is not supported"
        largest = sum(
            255 * multiplier << op.left_shift >> (31 - shift)
            for multiplier, shift in zip(op.multipliers, op.shifts, strict=True)
        )
        if largest * op.output_multiplier >> (31 - op.output_shift) > 32000:
            return "sums do not fit 16 bits"
        return ""
