"""MUL, with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.riscv.kernels.rvp.operands import (
    HEADER,
    ROWS,
    SOURCE,
    instructions,
    lowering,
    structures,
    why_not_rows,
)
from stages.backends.riscv.kernels.rvp.tiles import Loop

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView

MUL = Structure("rvp_mul", (*ROWS, "zero_point0", "zero_point1", "multiplier", "rounder", "clip"))
LARGEST = 255 * 255  # product of two inputs less their zero points
LOOP = Loop(48, 30, 90)  # as measured


class Mul(Kernel):
    """MUL, four elements per 32-bit lane: 16x16-bit products and the output's two roundings."""

    name = "rvp.mul_s8"
    row_alignment = 8
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mul"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("mul.c", SOURCE)
    headers: ClassVar[tuple[str, ...]] = ("mul.h", HEADER)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or why_not_rows(view, target) or _why_not_arithmetic(view)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
        fields = {f"zero_point{number}": op.zero_points[number] - offset for number in range(2)}
        fields |= {"multiplier": op.output_multiplier, "rounder": 1 << (31 + op.output_shift), "clip": clip_word(view)}
        return structures(view, target, MUL, fields)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return lowering(view, target, "rvp_mul_s8", MUL)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return instructions(view, target, LOOP)


def _why_not_arithmetic(view: LayerView) -> str:
    """Return why the kernel's products could differ from the reference, '' if they cannot."""
    op = view.op
    if not -31 <= op.output_shift <= -1:
        return f"an output shift of {op.output_shift} is not supported"
    if LARGEST * op.output_multiplier >> (31 - op.output_shift) > 32000:
        return "products do not fit 16 bits"
    return ""
