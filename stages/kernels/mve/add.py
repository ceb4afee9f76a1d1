"""ADD and SUB of tensors of one size.

The reference brings both inputs to twice the larger scale, in Q20, and adds. For the input that has the larger scale
this is (x - zero_point) << 19, exactly: its real multiplier is 1/2. The other is scaled, and so is the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import HALF, SUFFIX, shifted_input
from stages.kernels.mve.base import MveKernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

# Of add.S
FIELDS = (
    *("offset", "zero_point1", "multiplier1", "rounder1"),
    *("multiplier", "rounder", "zero_point", "low", "high"),
)
LEFT_SHIFT = 20
_ALMOST_ONE = (1 << 31) - 1


class Add(MveKernel):
    """Four elements at a time."""

    name = "mve.add_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    sources = ("add.S",)
    headers: ClassVar[tuple[str, ...]] = ("add.h",)
    in_place = True

    def why_not_operator(self, view: LayerView) -> str:
        op, out = view.op, view.outputs[0]
        for tensor in view.inputs:
            if tensor.physical_shape != out.physical_shape:
                return f"tensor {tensor.name} is not of the output's shape"
        if op.rounding != "double" or op.left_shift != LEFT_SHIFT:
            return "not the reference's 20 bits and two roundings"
        number = shifted_input(view)
        if number < 0:
            return "no input (sub: the first) has the larger scale"
        if op.shifts[1 - number] > -1 and (op.multipliers[1 - number], op.shifts[1 - number]) != (HALF, 0):
            return "an input is scaled by more than 1/2"
        return "" if op.output_shift < 0 else f"the output's shift is {op.output_shift}"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        values = fields(view)
        return {"fields": np.array([values[name] for name in FIELDS], np.int32)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.tir.addition import add
        from stages.kernels.tir.block import Operand

        function = f"mve_{view.op.op}_{SUFFIX[view.outputs[0].dtype]}"
        return add(view, function, [Operand("fields", (len(FIELDS),), "int32")], first=shifted_input(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """21 instructions for four elements, as counted."""
        return 21.0 * -(-view.outputs[0].elements // 4) + 30


def fields(view: LayerView) -> dict[str, int]:
    """The fields of add.S.

    1/2 as the scale of the other input is (2^31 - 1, -1): the multiplication changes no number below 2^30, and the
    shift drops a zero.
    """
    op, shifted = view.op, shifted_input(view)
    other = 1 - shifted
    multiplier, shift = op.multipliers[other], op.shifts[other]
    if shift == 0:
        multiplier, shift = _ALMOST_ONE, -1
    return {
        "offset": -(op.zero_points[shifted] << (LEFT_SHIFT - 1)),
        "zero_point1": op.zero_points[other] << LEFT_SHIFT,
        "multiplier1": multiplier,
        "rounder1": 1 << (31 + shift),
        "multiplier": op.output_multiplier,
        "rounder": 1 << (31 + op.output_shift),
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
    }
