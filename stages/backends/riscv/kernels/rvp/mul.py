"""MUL, with broadcasting."""

from typing import ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.structure import Structure
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.riscv.kernels.rvp.operands import ROWS, Operands
from stages.backends.riscv.kernels.rvp.tiles import Loop
from stages.ir.graph import LayerView

LARGEST = 255 * 255  # product of two inputs less their zero points


class Mul(Operands):
    """MUL, four elements per 32-bit lane: 16x16-bit products and the output's two roundings."""

    name = "rvp.mul_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"mul"})
    sources = ("mul.c", "expand.c")
    headers: ClassVar[tuple[str, ...]] = ("mul.h", "expand.h")
    structure = Structure("rvp_mul", (*ROWS, "zero_point0", "zero_point1", "multiplier", "rounder", "clip"))
    loop = Loop(48, 30, 90)

    def fields(self, view: LayerView) -> dict[str, int]:
        op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
        fields = {f"zero_point{number}": op.zero_points[number] - offset for number in range(2)}
        scale = {"multiplier": op.output_multiplier, "rounder": 1 << (31 + op.output_shift)}
        return fields | scale | {"clip": clip_word(view)}

    def why_not_arithmetic(self, view: LayerView) -> str:
        op = view.op
        if not -31 <= op.output_shift <= -1:
            return f"an output shift of {op.output_shift} is not supported"
        if LARGEST * op.output_multiplier >> (31 - op.output_shift) > 32000:
            return "products do not fit 16 bits"
        return ""
