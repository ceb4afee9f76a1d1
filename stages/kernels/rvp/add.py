"""ADD and SUB of tensors of one shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import INT8_OFFSET, not_eight_bit
from stages.kernels.kernel import Kernel
from stages.kernels.rvp.base import clip_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

FIELDS = 10  # int32 fields of the C structure rvp_add


class Add(Kernel):
    """Four elements of each 32-bit lane at a time: 32x16-bit products, kadd32, and the output's two roundings."""

    name = "rvp.add_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    sources = ("add.c",)
    headers: ClassVar[tuple[str, ...]] = ("add.h",)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or _why_not_shape(view) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
        fields = [op.left_shift - 15]
        for zero_point, multiplier, shift in zip(op.zero_points, op.multipliers, op.shifts, strict=True):
            fields += [zero_point - offset, multiplier, (1 << (31 + shift)) + 1 if shift else 0]
        fields += [op.output_multiplier, 1 << (31 + op.output_shift), clip_word(view)]
        return {"add": np.array(fields, np.int32)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.tir.addition import add
        from stages.kernels.tir.block import Operand

        return add(view, f"rvp_{view.op.op}_s8", [Operand("add", (FIELDS,), "int32")])

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """62 instructions for four elements of each lane, as measured."""
        return 62 / (4 * (target.word_bits // 32)) * view.outputs[0].elements + 80


def _why_not_shape(view: LayerView) -> str:
    first, second, out = *view.inputs, view.outputs[0]
    if not first.shape == second.shape == out.shape:
        return "the inputs are broadcast"
    if len({tensor.permutation for tensor in (first, second, out)}) > 1:
        return "the tensors have different layouts"
    return ""


def _why_not_arithmetic(view: LayerView) -> str:
    """Why the sums of the kernel could differ from the reference's."""
    op = view.op
    if op.rounding != "double":
        return "rounds once"
    # v << shift must fit 16 bits for v in [-255, 255]; then |t| <= 255 * 2^20, so 2^(31 - s) + 1 is exact for s <= 3.
    if not 15 <= op.left_shift <= 20:
        return f"a left shift of {op.left_shift}"
    if any(not -3 <= shift <= 0 for shift in op.shifts):
        return f"shifts {op.shifts} of the inputs"
    if not -31 <= op.output_shift <= -1:
        return f"an output shift of {op.output_shift}"
    largest = sum(
        255 * multiplier << op.left_shift >> (31 - shift)
        for multiplier, shift in zip(op.multipliers, op.shifts, strict=True)
    )
    if largest * op.output_multiplier >> (31 - op.output_shift) > 32000:
        return "sums do not fit 16 bits"
    return ""
