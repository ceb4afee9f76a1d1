"""ADD and SUB, with broadcasting."""

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

ADD = Structure(
    "rvp_add",
    (
        *(*ROWS, "shift", "zero_point0", "multiplier0", "rounder0", "zero_point1", "multiplier1", "rounder1"),
        *("multiplier", "rounder", "clip"),
    ),
)
LOOP = Loop(64, 40, 107)  # as measured


class Add(Kernel):
    """ADD and SUB, four elements per 32-bit lane.

    32x16-bit products, kadd32, and the two roundings of the output.
    """

    name = "rvp.add_s8"
    row_alignment = 8
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("add.c", SOURCE)
    headers: ClassVar[tuple[str, ...]] = ("add.h", HEADER)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or why_not_rows(view, target) or _why_not_arithmetic(view)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
        fields = {"shift": op.left_shift - 15, "multiplier": op.output_multiplier}
        for number, shift in enumerate(op.shifts):
            fields |= {
                f"zero_point{number}": op.zero_points[number] - offset,
                f"multiplier{number}": op.multipliers[number],
                f"rounder{number}": (1 << (31 + shift)) + 1 if shift else 0,
            }
        fields |= {"rounder": 1 << (31 + op.output_shift), "clip": clip_word(view)}
        return structures(view, target, ADD, fields)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return lowering(view, target, f"rvp_{view.op.op}_s8", ADD)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return instructions(view, target, LOOP)


def _why_not_arithmetic(view: LayerView) -> str:
    """Return why the kernel's sums could differ from the reference, '' if they cannot."""
    op = view.op
    # v << shift must fit 16 bits for v in [-255, 255]; then |t| <= 255 * 2^20, so 2^(31 - s) + 1 is exact for s <= 3.
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
