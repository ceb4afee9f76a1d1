"""PRELU with broadcast slopes."""

from typing import ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.structure import Structure
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.riscv.kernels.rvp.operands import ROWS, Operands
from stages.backends.riscv.kernels.rvp.tiles import Loop
from stages.ir.graph import LayerView

SCALES = ("multiplier0", "rounder0", "multiplier1", "rounder1")
LARGEST = (255, 255 * 255)  # a value less its zero point, and its product with a slope less that of slopes


class Prelu(Operands):
    """PRELU, four elements per 32-bit lane.

    16x16-bit products with a slope or one, and two roundings.
    """

    name = "rvp.prelu_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"prelu"})
    sources = ("prelu.c", "expand.c")
    headers: ClassVar[tuple[str, ...]] = ("prelu.h", "expand.h")
    structure = Structure("rvp_prelu", (*ROWS, "zero_point0", "zero_point1", "one", *SCALES, "clip"))
    loop = Loop(69, 43, 102)

    def fields(self, view: LayerView) -> dict[str, int]:
        op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
        fields = {"one": 1 << max(op.shifts[0], 0), "clip": clip_word(view)}
        for number, shift in enumerate(op.shifts):
            fields |= {
                f"zero_point{number}": op.zero_points[number] - offset,
                f"multiplier{number}": op.multipliers[number],
                f"rounder{number}": 1 << (31 + shift) if shift < 0 else (1 << 31) - 1,
            }
        return fields

    def why_not_arithmetic(self, view: LayerView) -> str:
        op = view.op
        if op.shifts[0] < -31 or not -31 <= op.shifts[1] <= -1:
            return f"shifts {op.shifts} are not supported"
        if any(
            most * multiplier * 2.0**shift > 32000 * 2.0**31
            for most, multiplier, shift in zip(LARGEST, op.multipliers, op.shifts, strict=True)
        ):
            return "results do not fit 16 bits"
        return ""
