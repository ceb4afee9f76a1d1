"""ADD and SUB, with broadcasting.

The reference scales both inputs to twice the larger scale, in Q20, and adds. For the input with the larger scale this
is exactly (x - zero_point) << 19, as its real multiplier is 1/2. The other input uses a table of 256 values, from which
the first input's zero point is subtracted too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp import rounding
from stages.backends.cortex_m.kernels.arm_dsp.base import clamps
from stages.backends.cortex_m.kernels.arm_dsp.rows import ROWS, layer, rows_of, why_not_rows
from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit, same_bytes, shifted_input
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.addition import add, rescaled_sum
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

FIELDS = Structure.of_header("arm_dsp_add", __file__, "add.h")
COMMON_SHIFT = 19


class Add(Kernel):
    """ADD and SUB: one input by a shift, the other by a table of 1 KB."""

    name = "arm_dsp.add_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    sources = ("add.c",)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or why_not_rows(view) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        doubled, rounder = factors(view)
        fields = FIELDS.of({"doubled": doubled, "rounder": rounder, **clamps(view)})
        constants = {"table": table(view), "fields": fields}
        if not _is_flat(view):
            constants["rows"] = ROWS.of(rows_of(view, shifted_input(view)).fields)
        return constants

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        first, suffix = shifted_input(view), SUFFIX[view.outputs[0].dtype]
        constants = [Operand("table", (256,), "int32"), Operand("fields", FIELDS.shape, "int32")]
        if _is_flat(view):
            return add(view, f"arm_dsp_add_{suffix}", constants, first=first)
        rows = rows_of(view, first)
        kind = {(1, 1): "each", (0, 1): "one0", (1, 0): "one1"}[rows.steps]
        constants.append(Operand("rows", ROWS.shape, "int32"))
        function = f"arm_dsp_add_{kind}_{suffix}"
        return layer(view, rows, function, constants, lambda x: output(view, rescaled_sum(view.op, x)))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, as measured: 10 per element, 14 per run.

        An element takes 8 or 9 where one operand repeats.
        """
        elements = view.outputs[0].elements
        if _is_flat(view):
            return 10.0 * elements + 40
        rows = rows_of(view, shifted_input(view))
        element_cost = {(1, 1): 10.0, (0, 1): 9.0, (1, 0): 8.0}[rows.steps]
        return element_cost * elements + elements / rows.run.extent * (14 + 3 * (rows.run.extent % 4)) + 70


def _is_flat(view: LayerView) -> bool:
    """Return whether all tensors have one shape and layout and form a single run."""
    return all(same_bytes(tensor, view.outputs[0]) for tensor in view.inputs)


def _why_not_arithmetic(view: LayerView) -> str:
    if not view.op.rounds_twice or view.op.left_shift != COMMON_SHIFT + 1:
        return "the layer does not use 20 bits and two roundings"
    if shifted_input(view) < 0:
        return "no input has the larger scale (sub: the first input must have it)"
    try:
        factors(view)
    except ValueError as error:
        return str(error)
    return ""


def table(view: LayerView) -> npt.NDArray[np.int32]:
    """Return int32 [256]: the addend for each byte of the other input.

    It includes the zero point of the shifted input.
    """
    op, shifted = view.op, shifted_input(view)
    other = 1 - shifted
    dtype = view.inputs[other].dtype
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64)
    m, shift = op.multipliers[other], op.shifts[other]
    common = (values - op.zero_points[other]) << op.left_shift
    t = (common * m * (1 << max(shift, 0)) + (1 << 30)) >> 31
    right = max(-shift, 0)
    share = (t + ((1 << right) >> 1) - ((t < 0) & (right > 0))) >> right
    return (op.sign * share - (op.zero_points[shifted] << COMMON_SHIFT)).astype(np.int32)


def factors(view: LayerView) -> tuple[int, int]:
    """Return the output's doubled multiplier and its lowered rounder (rounding.py).

    Sums are within 2^29, results within 2^15 minus the zero point's share. Raises ValueError if no exact rounding
    exists.
    """
    op = view.op
    if op.output_shift > -15:
        raise ValueError(f"an output shift of {op.output_shift}; results may not fit 16 bits")
    return int(rounding.doubled(np.array([op.output_multiplier]))[0]), rounding.lowered_rounder(op.output_shift)
