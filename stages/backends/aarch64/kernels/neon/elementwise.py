"""ADD and SUB of tensors of the same shape."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.aarch64.kernels.neon import packing
from stages.backends.aarch64.kernels.neon.base import NeonKernel, output_constants
from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.addition import add
from stages.backends.kernels.tir.block import Operand
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

# The int32 fields of the C structure neon_add, behind 64 bytes of vectors.
ADD_FIELDS = 9
ADD_BYTES = 64 + 4 * ADD_FIELDS
LEAST = 16  # elements


class Add(NeonKernel):
    """ADD and SUB, sixteen elements at a time."""

    name = "neon.add"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    sources = ("add.c",)
    headers: ClassVar[tuple[str, ...]] = ("elementwise.h",)
    in_place = True

    def why_not_planar(self, view: LayerView) -> str:
        """Return why the layouts do not fit, '' if all tensors have the same."""
        planar = {tensor.layout == "NCHW" for tensor in (*view.inputs, *view.outputs)}
        return "the tensors are NHWC and NCHW; this kernel needs one layout" if len(planar) > 1 else ""

    def why_not_operator(self, view: LayerView) -> str:
        op, out = view.op, view.outputs[0]
        for tensor in view.inputs:
            if tensor.shape != out.shape:
                return f"tensor {tensor.name} is broadcast; this kernel needs equal shapes"
        if out.elements < LEAST:
            return f"{out.elements} elements; this kernel needs at least {LEAST}"
        if not op.rounds_twice or max(op.shifts) > 0 or op.output_shift >= 0:
            return "the layer rounds once or shifts left; this kernel does neither"
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        inputs = (op.multipliers[0], op.shifts[0], op.multipliers[1], op.shifts[1])
        fields = (*op.zero_points, op.left_shift, *inputs, op.output_multiplier, op.output_shift)
        return {"add": packing.structure(output_constants(view), fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        function = f"neon_{view.op.op}_{SUFFIX[view.outputs[0].dtype]}"
        return add(view, function, [Operand("add", (ADD_BYTES,), "int8")])

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts: 105 per 16 elements."""
        return 105.0 * -(-view.outputs[0].elements // 16) + 60
