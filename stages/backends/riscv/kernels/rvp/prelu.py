"""PRELU with broadcast slopes."""

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

SCALES = ("multiplier0", "rounder0", "multiplier1", "rounder1")
PRELU = Structure("rvp_prelu", (*ROWS, "zero_point0", "zero_point1", "one", *SCALES, "clip"))
LARGEST = (255, 255 * 255)  # a value less its zero point, and its product with a slope less that of slopes
LOOP = Loop(69, 43, 102)  # as measured


class Prelu(Kernel):
    """PRELU, four elements per 32-bit lane.

    16x16-bit products with a slope or one, and two roundings.
    """

    name = "rvp.prelu_s8"
    row_alignment = 8
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"prelu"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("prelu.c", SOURCE)
    headers: ClassVar[tuple[str, ...]] = ("prelu.h", HEADER)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or why_not_rows(view, target) or _why_not_arithmetic(view)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
        fields = {"one": 1 << max(op.shifts[0], 0), "clip": clip_word(view)}
        for number, shift in enumerate(op.shifts):
            fields |= {
                f"zero_point{number}": op.zero_points[number] - offset,
                f"multiplier{number}": op.multipliers[number],
                f"rounder{number}": 1 << (31 + shift) if shift < 0 else (1 << 31) - 1,
            }
        return structures(view, target, PRELU, fields)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return lowering(view, target, "rvp_prelu_s8", PRELU)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return instructions(view, target, LOOP)


def _why_not_arithmetic(view: LayerView) -> str:
    """Return why the kernel's results could differ from the reference, '' if they cannot."""
    op = view.op
    if op.shifts[0] < -31 or not -31 <= op.shifts[1] <= -1:
        return f"shifts {op.shifts} are not supported"
    if any(
        most * multiplier * 2.0**shift > 32000 * 2.0**31
        for most, multiplier, shift in zip(LARGEST, op.multipliers, op.shifts, strict=True)
    ):
        return "results do not fit 16 bits"
    return ""
